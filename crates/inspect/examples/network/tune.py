#!/usr/bin/env python3
"""Trains a network further on texts that were written for it: tune.py FROM OUT GOLDEN ORDINARY

FROM and OUT are files as `profiles/detect/injection.network`; GOLDEN are scores for the test of the Rust code; ORDINARY are honest
records (JSON Lines): files of a machine, and of source `docs` documents about prompts and attacks, which quote some.
The texts are `pairs.jsonl.xz` beside this program, the others of `../train` and the corpora without a fifth of their groups. What FROM
says of old texts counts beside their label. The highest window of an attack stands for it, of an honest text the two highest, and of more than three one more. CORPORA names the folder of the corpora,
READINGS the program `readings` if it is not in `target/release/examples`."""

import collections
import json
import lzma
import pathlib
import random
import struct
import subprocess
import sys

import numpy as np
import torch
from torch.nn import functional

from pieces import Pieces
from student import LAYERS, PAIRS, WIDTH, Student, batch, scores, written
from windows import CORPORA, READINGS, TRAIN, corpora, lines, part

WINDOW, STEP, BESIDE, PART = 104, 64, 300, 2048  # as in network.rs and second.rs
EPOCHS, BATCH, RATE, OLD = 6, 64, 1e-3, 0.5
QUOTED = 1.0  # what the old network gives a window of a document about attacks from which it may quote one
AVERAGED = 0.99  # of the weights, every fourth step


def read(path):
    """The network of a file, and its pieces."""
    file = pathlib.Path(path).read_bytes()
    pieces, pairs, layers, names = struct.unpack("<4I", file[4:20])
    assert file[:4] == b"FDN1" and (pairs, layers) == (PAIRS, LAYERS)
    at = 20 + names
    vocabulary = ["[PAD]", "[UNK]", *file[20:at].decode().split("\n")]

    def numbers(*shape):
        nonlocal at
        many = int(np.prod(shape))
        at += 4 * many
        return torch.from_numpy(np.frombuffer(file, "<f4", many, at - 4 * many).copy().reshape(shape))

    def table(many):
        nonlocal at
        steps = numbers(many, 1)
        at += many * WIDTH
        return torch.from_numpy(np.frombuffer(file, np.int8, many * WIDTH, at - many * WIDTH).reshape(many, WIDTH).astype(np.float32)) * steps

    network = Student(torch.zeros(pieces, WIDTH))
    network.single.weight.data, network.pairs.weight.data = table(pieces), table(PAIRS)
    for near, bias, across, norm in zip(network.near, network.near_bias, network.across, network.norm):
        near.data, bias.data = numbers(5, WIDTH), numbers(WIDTH)
        across.weight.data, across.bias.data = numbers(WIDTH, WIDTH).T.contiguous(), numbers(WIDTH)
        norm.weight.data, norm.bias.data = numbers(WIDTH), numbers(WIDTH)
    hidden, answers = network.hidden, network.answers
    hidden.weight.data, hidden.bias.data = numbers(2 * WIDTH, hidden.out_features).T.contiguous(), numbers(hidden.out_features)
    answers.weight.data, answers.bias.data = numbers(2, hidden.out_features), numbers(2)
    assert at == len(file)
    return network, vocabulary


@torch.no_grad()
def judge(network, rows):
    was = network.training
    network.eval()
    out, order = np.zeros((len(rows), 2), np.float32), sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for i in range(0, len(order), 256):
        out[order[i : i + 256]] = network(*batch([rows[j] for j in order[i : i + 256]])).numpy()
    network.train(was)
    return out


class Bag:
    """A record with its windows."""

    def __init__(self, record, cut, weight, old):
        self.source = record["source"]
        self.definition, self.attack = int(record["kind"] == "tool_description"), record["label"] == "malicious"
        self.weight, self.old, self.windows = weight, old, []
        for (text, how), (from_, to) in zip(record["texts"], record["spans"]):
            if how and len(text) < 24:
                continue
            if self.attack or self.definition or len(text) < 3000:
                self.windows += cuts(cut, text[:16_000])
            else:
                # What the program shows the network of a long result, and six windows more.
                raw = text.encode()
                start = max(0, from_ - BESIDE)
                self.windows += cuts(cut, raw[start : min(len(raw), to + BESIDE, start + PART)].decode(errors="ignore"))
                more = cuts(cut, text[:30_000])
                self.windows += random.sample(more, min(6, len(more)))


def cuts(cut, text):
    ids = cut(text)[:4096]
    return [ids[i : i + WINDOW] for i in range(0, max(1, len(ids) - WINDOW + STEP), STEP)] if ids else []


def readings(records):
    given = "\n".join(json.dumps(r) for r in records) + "\n"
    done = subprocess.run([READINGS], input=given, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in done.splitlines()]


def bags(cut, ordinary):
    out = []

    def add(record, weight, most, old=OLD):
        bag = Bag(record, cut, weight, old)
        bag.windows = bag.windows[:most]
        if bag.windows:
            out.append(bag)

    records = readings(r for r in corpora() if r["source"] != "written" and r["kind"] != "session")
    many = collections.Counter(r["source"] for r in records if r["label"] == "malicious")
    for record in records:
        source = record["source"]
        if part("g/" + str(record["group"])) % 5 == 0:
            continue
        if record["label"] == "malicious":
            add(record, min(1, 250 / many[source]) * (0.25 if record["kind"] == "prompt" or source == "bipia" else 1), 64)
        else:
            add(record, 0.7 if source in ("benign_results", "bipia_benign") else 1, 24)
    for name in ("written", "written-results", "written-definitions"):
        for record in readings(lines(TRAIN / f"{name}.jsonl", name)):
            add(record, 1, 64)
    with lzma.open(pathlib.Path(__file__).parent / "pairs.jsonl.xz", "rt", encoding="utf-8") as file:
        pairs = [json.loads(line) | {"id": str(i), "group": str(i), "source": "pairs"} for i, line in enumerate(file)]
    for record in readings(pairs):
        add(record, 1 if record["label"] == "malicious" else 1.3, 64, 0)
    with open(ordinary, encoding="utf-8") as file:
        own = [json.loads(line) for line in file]
    for record in readings(own):
        add(record, 0.7, 8)
    print(len(out), "records,", len(pairs), "of them of pairs", flush=True)
    return out


def items(network, all_):
    """(window, definition, label, weight, what the old network says of it, how much that counts) of one epoch."""
    answers, at, out = judge(network, [w for bag in all_ for w in bag.windows]), 0, []
    for bag in all_:
        mine, at = answers[at : at + len(bag.windows), bag.definition], at + len(bag.windows)
        order = list(np.argsort(-mine))
        if bag.attack:
            chosen = [(order[0], bag.old)]
        else:
            chosen = [(i, bag.old / 2) for i in order[:2] + ([random.choice(order[2:])] if len(order) > 3 else [])]
        for i, old in chosen:
            # Of what is far from an attack two in five.
            if bag.attack or mine[i] >= -4 or random.random() > 0.6:
                out.append((bag.windows[i], bag.definition, float(bag.attack), bag.weight, bag.said[i][bag.definition], old))
    return out


def learn(network, all_):
    mean = [p.detach().clone() for p in network.parameters()]
    tables = [network.single.weight, network.pairs.weight]
    others = [p for p in network.parameters() if all(p is not t for t in tables)]
    optimiser = torch.optim.AdamW([{"params": tables, "weight_decay": 0.0}, {"params": others, "weight_decay": 0.01}], lr=RATE)
    network.drop.p, network.left_out = 0.25, 0.12
    network.train()
    step, steps = 0, None
    for epoch in range(EPOCHS):
        some = items(network, all_)
        order, batches, total = np.random.permutation(len(some)), [], 0.0
        for i in range(0, len(order), BATCH * 30):
            alike = sorted(order[i : i + BATCH * 30], key=lambda j: len(some[j][0]))
            batches += [alike[j : j + BATCH] for j in range(0, len(alike), BATCH)]
        random.shuffle(batches)
        steps = steps or len(batches) * EPOCHS
        for chosen in batches:
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1, (step + 1) / 100) * max(0.02, 1 - step / steps)
            windows, definition, label, weight, said, old = zip(*(some[j] for j in chosen))
            got = network(*batch(windows))[torch.arange(len(chosen)), torch.tensor(definition)]
            label, weight, old = (torch.tensor(x, dtype=torch.float) for x in (label, weight, old))
            want = (label * 0.97 + 0.015) * (1 - old) + torch.sigmoid(torch.tensor(np.array(said, np.float32))) * old
            losses = functional.binary_cross_entropy_with_logits(got, want, reduction="none")
            loss = (losses * weight).sum() / weight.sum()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
            optimiser.step()
            step += 1
            total += loss.item()
            if step % 4 == 0:
                kept = min(AVERAGED, step / 4 / (step / 4 + 10))
                with torch.no_grad():
                    for m, p in zip(mean, network.parameters()):
                        m.mul_(kept).add_(p.detach(), alpha=1 - kept)
        print("epoch", epoch, len(some), f"{total / len(batches):.4f}", flush=True)
    for m, p in zip(mean, network.parameters()):
        p.data.copy_(m)


def main():
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    start, out, golden, ordinary = sys.argv[1:]
    if not any(CORPORA.glob("*.jsonl.gz")):
        sys.exit(f"tune.py: no corpora in {CORPORA}: name their folder in CORPORA")
    network, vocabulary = read(start)
    cut = Pieces(vocabulary)
    all_ = bags(cut, ordinary)
    said, at = judge(network, [w for bag in all_ for w in bag.windows]), 0
    for bag in all_:
        bag.said, at = said[at : at + len(bag.windows)], at + len(bag.windows)
        if bag.source == "docs":
            plain = [i for i, answers in enumerate(bag.said) if answers[0] < QUOTED]
            bag.windows, bag.said = [bag.windows[i] for i in plain], bag.said[plain]
    all_ = [bag for bag in all_ if bag.windows]
    learn(network, all_)
    network.eval()
    pathlib.Path(out).write_bytes(written(network, vocabulary))
    scores(network, cut, golden)


if __name__ == "__main__":
    main()
