#!/usr/bin/env python3
"""Prints AgentDojo's own solutions of its users' tasks, one JSON object a line: {"name": "agentdojo/SUITE/TASK", "step":
[{"call": "SERVER/TOOL", "with": {...}}]}. Needs the package `agentdojo`. The servers are those of servers.toml."""

import json
import sys

from agentdojo.task_suite.load_suites import get_suites

BENCHMARK = "v1.2.2"


def main():
    """Prints them."""
    servers = json.load(sys.stdin)
    for name, suite in get_suites(BENCHMARK).items():
        of = {tool.name: servers[f"{name} {tool.run.__module__.rpartition('.')[2]}"] for tool in suite.tools}
        for task in suite.user_tasks.values():
            environment = task.init_environment(suite.load_and_inject_default_environment({}))
            steps = [{"call": f"{of[call.function]}/{call.function}", "with": dict(call.args)} for call in task.ground_truth(environment)]
            if steps:
                print(json.dumps({"name": f"agentdojo/{name}/{task.ID}", "step": steps}))


main()
