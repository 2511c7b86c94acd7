#!/usr/bin/env python3
"""Fine-tunes MiniLM to tell instructions to the agent, and lets it judge windows for the student.

teacher.py train leave|all EPOCHS OUT [--from TEACHER] FOLDER…   FOLDER: ordinary texts
teacher.py judge TEACHER OUT FOLDER…                             windows with its log-odds, for student.py
"""

import collections
import pickle
import random
import re
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import AutoModel

from windows import HARD, MINILM, MOST, split, window

BATCH, OTHERS, FROZEN = 24, 4500, 2


class Teacher(nn.Module):
    """MiniLM in half precision; two answers (results, definitions) from the mean and the maximum over the pieces."""

    def __init__(self, path=None):
        super().__init__()
        self.body = AutoModel.from_pretrained(MINILM, attn_implementation="sdpa", add_pooling_layer=False).to(torch.bfloat16)
        self.head = nn.Linear(768, 2)
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.zeros_(self.head.bias)
        for module in self.body.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.05
        for module in [self.body.embeddings, *self.body.encoder.layer[:FROZEN]]:
            module.requires_grad_(False)
        if path:
            self.load_state_dict(torch.load(path))

    def forward(self, windows):
        length = max(len(w) for w in windows) + 2
        ids, mask = torch.zeros(len(windows), length, dtype=torch.long), torch.zeros(len(windows), length)
        for i, w in enumerate(windows):
            ids[i, : len(w) + 2] = torch.tensor([101, *w.ids, 102])
            mask[i, : len(w) + 2] = 1
        rows = self.body(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        mask = mask[..., None]
        mean = (rows * mask).sum(1) / mask.sum(1)
        return self.head(torch.cat([mean, rows.masked_fill(mask == 0, -1e4).amax(1)], 1))

    @torch.no_grad()
    def judge(self, windows):
        self.eval()
        out, order = np.zeros((len(windows), 2), np.float32), sorted(range(len(windows)), key=lambda i: len(windows[i]))
        for i in range(0, len(order), 32):
            out[order[i : i + 32]] = self([windows[j] for j in order[i : i + 32]]).numpy()
        self.train()
        return out


def highest(teacher, bags):
    scores = teacher.judge([w for b in bags for w in b["windows"]])
    for bag in bags:
        mine, scores = scores[: len(bag["windows"])], scores[len(bag["windows"]) :]
        yield bag["windows"][int(mine[:, int(bag["definition"])].argmax())]


def items(first, train, teacher):
    """(window, definition, label, weight) of one epoch: of an attack its highest window, in the first epoch short ones whole."""
    out, by = [], collections.defaultdict(list)
    for bag in train:
        if bag["attack"]:
            by[bag["source"], bag["definition"]].append(bag)
    for (source, definition), some in sorted(by.items()):
        random.shuffle(some)
        if first:
            some = [b for b in some if len(b["windows"]) <= 2] or some
        some = some[: MOST.get(source, len(some))]
        weight = {"written": 1.5, "new_results": 1.5, "new_definitions": 1.5, "kinds": 0.5, "bipia": 0.5, "new_languages": 0.7}
        each = weight.get(source, min(3.0, 120 / len(some)))
        chosen = [b["windows"] for b in some] if first else [[w] for w in highest(teacher, some)]
        for bag, windows in zip(some, chosen):
            out += [(w, definition, 1.0, each / len(windows) * (0.25 if bag["kind"] == "prompt" else 1)) for w in windows]
    hard, rest = [], []
    for bag in train:
        if not bag["attack"]:
            most = {"benign_results": 6, "benign_results_hard_security_docs": 6, "bipia_benign": 6, "ordinary": 2}.get(bag["source"], 4)
            weight = HARD.get(bag["source"], 1)
            for i in np.random.permutation(len(bag["windows"]))[:most]:
                (hard if weight > 1 else rest).append((bag["windows"][i], bag["definition"], 0.0, weight))
    random.shuffle(rest)
    if not first:
        # Half of what is nearest to an attack, a quarter of the others.
        rest = rest[: OTHERS * 2]
        scores = teacher.judge([x[0] for x in rest])
        order = np.argsort([-s[int(x[1])] for s, x in zip(scores, rest)])
        rest = [rest[i] for i in order[: OTHERS // 2]] + [rest[i] for i in random.sample(list(order[OTHERS // 2 :]), OTHERS // 4)]
    return out + hard + rest[:OTHERS]


def learn(mode, epochs, out, start, folders):
    train, _ = split(mode, folders)
    teacher = Teacher(start)
    teacher.train()
    body = [p for p in teacher.body.parameters() if p.requires_grad]
    # Steps are too small for half precision: they are added up in single.
    exact = [p.detach().float().clone() for p in body]
    rates = (8e-5, 5e-4) if start else (1e-4, 2e-3)
    groups = [{"params": exact}, {"params": teacher.head.parameters()}]
    optimiser, step, steps = torch.optim.AdamW(groups, weight_decay=0.01), 0, 0
    for epoch in range(epochs):
        chosen = items(epoch == 0 and not start, train, teacher)
        random.shuffle(chosen)
        batches = []
        for i in range(0, len(chosen), BATCH * 20):
            alike = sorted(chosen[i : i + BATCH * 20], key=lambda x: len(x[0]))
            batches += [alike[j : j + BATCH] for j in range(0, len(alike), BATCH)]
        random.shuffle(batches)
        steps = steps or len(batches) * epochs
        for batch in batches:
            for group, rate in zip(optimiser.param_groups, rates):
                group["lr"] = rate * min(1.0, (step + 1) / 80) * max(0.05, 1 - step / steps)
            windows, definition, label, weight = zip(*batch)
            answers = teacher(windows)[torch.arange(len(batch)), torch.tensor(definition).long()]
            label, weight = torch.tensor(label) * 0.98 + 0.01, torch.tensor(weight, dtype=torch.float)
            losses = functional.binary_cross_entropy_with_logits(answers, label, reduction="none")
            teacher.zero_grad()
            ((losses * weight).sum() / weight.sum()).backward()
            for sum_, p in zip(exact, body):
                sum_.grad = p.grad.float()
            torch.nn.utils.clip_grad_norm_(exact, 1.0)
            optimiser.step()
            with torch.no_grad():
                for sum_, p in zip(exact, body):
                    p.copy_(sum_)
            step += 1
        torch.save(teacher.state_dict(), f"{out}.{epoch}")


def piece(text, many):
    if len(text) <= many:
        return text
    at = random.randrange(len(text) - many)
    at = text.find(" ", at) + 1
    return text[at : at + many]


def mixed(text, around, way):
    """One to three sentences of a text, alone or beside or between pieces of another."""
    parts = [p for p in re.split(r"(?<=[.!?])\s+|\n", text) if len(p) > 15] or [text]
    at = random.randrange(len(parts))
    some = " ".join(parts[at : at + random.choice((1, 1, 2, 2, 3))])
    return (some, f"{piece(around, 150)} {some} {piece(around, 120)}", f"{piece(around, 200)}. {some}", f"{some} {piece(around, 250)}")[way % 4]


def rows(train):
    """(window, definition, label or None, weight, source): what the student sees. Where the label is None the teacher's word counts."""
    out, by = [], collections.defaultdict(list)
    most = MOST | {"bipia": 60, "injecagent": 250, "cyberseceval_pi_multilingual": 250, "kinds": 900}
    for bag in train:
        if bag["attack"]:
            by[bag["source"], bag["definition"]].append(bag)
            continue
        many = {"benign_results": 9, "ordinary": 3, "benign_results_hard_security_docs": 10, "bipia_benign": 4}.get(bag["source"], 8)
        weight = 1.0 if bag["source"] in ("benign_results", "ordinary", "bipia_benign") else 2.0
        for i in np.random.permutation(len(bag["windows"]))[:many]:
            out.append((bag["windows"][i], bag["definition"], 0, weight, bag["source"]))
    for (source, definition), some in sorted(by.items()):
        random.shuffle(some)
        for bag in some[: most.get(source, len(some))]:
            windows = bag["windows"]
            for i in np.linspace(0, len(windows) - 1, min(5, len(windows))).astype(int):
                out.append((windows[i], definition, 1 if len(windows) == 1 else None, 1.0, source))
    for definition, many in ((False, 5000), (True, 4000)):
        own = ("written", "new_results", "new_definitions", "new_languages")
        attacks = [b["windows"][0].text for b in train if b["attack"] and b["definition"] == definition and b["source"] in own and len(b["windows"]) <= 2]
        plain = ("benign_results", "ordinary", "bipia_benign", "agentdojo_benign")
        honest = [
            w.text for b in train if not b["attack"] and b["definition"] == definition and (definition or b["source"] in plain) for w in b["windows"][:4]
        ]
        for i in range(many):
            w = window(mixed(random.choice(attacks), random.choice(honest), i))
            out += [(w, definition, None, 1.0, "mixture")] if w else []
    return out


def main():
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    what, *rest = sys.argv[1:]
    if what == "train":
        mode, epochs, out, *folders = rest
        start = folders[1] if folders[:1] == ["--from"] else None
        learn(mode, int(epochs), out, start, folders[2:] if start else folders)
    else:
        path, out, *folders = rest
        train, judge = split("all", folders)
        some = rows(train)
        scores = Teacher(path).judge([r[0] for r in some])
        pickle.dump((some, [float(s[int(r[1])]) for s, r in zip(scores, some)], train, judge), open(out, "wb"))


if __name__ == "__main__":
    main()
