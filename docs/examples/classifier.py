#!/usr/bin/env python3
"""A classifier for Firedoor that runs an ONNX model: classifier.py SOCKET MODEL.onnx TOKENIZER.json [INDEX]

The model takes `input_ids` and `attention_mask` and gives logits, one for each class, as text classifiers exported from
Hugging Face Transformers do; INDEX (1) is the class that means an injection. Needs: pip install onnxruntime tokenizers numpy
"""

import json
import os
import socketserver
import stat
import sys

import numpy
import onnxruntime
from tokenizers import Tokenizer

path, model, tokenizer = sys.argv[1:4]
index = int(sys.argv[4]) if len(sys.argv) > 4 else 1
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
wanted = {i.name for i in session.get_inputs()}
tokens = Tokenizer.from_file(tokenizer)
tokens.enable_truncation(512)


def score(text):
    encoded = tokens.encode(text)
    columns = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
    given = {name: numpy.array([values], dtype=numpy.int64) for name, values in columns.items() if name in wanted}
    logits = session.run(None, given)[0][0]
    shares = numpy.exp(logits - logits.max())
    return float((shares / shares.sum())[index])


class Reader(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            answer = {"score": score(json.loads(line)["text"])}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


os.umask(0o077)
# What an earlier run has left. Anything else that stands there is not ours to remove.
if os.path.exists(path) and stat.S_ISSOCK(os.lstat(path).st_mode):
    os.unlink(path)
with socketserver.UnixStreamServer(path, Reader) as listener:
    listener.serve_forever()
