#!/usr/bin/env python3
"""Tools of the AgentDojo benchmark as a server: agentdojo_server.py SUITE MODULE

SUITE is `workspace`, `travel`, `banking` or `slack`; MODULE the last part of the name of the module whose tools are offered,
such as `email_client`. The tools are AgentDojo's own and work on the suite's environment as it is without injections; each
server has one of its own. Needs the package `agentdojo`.
"""

import sys

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suite
from stdio_mcp import Tool, serve

BENCHMARK = "v1.2.2"

SUITE, MODULE = sys.argv[1:]
suite = get_suite(BENCHMARK, SUITE)
functions = [function for function in suite.tools if function.run.__module__.rpartition(".")[2] == MODULE]
if not functions:
    sys.exit(f"agentdojo_server.py: {SUITE} has no tools of a module {MODULE}")
environment = suite.load_and_inject_default_environment({})
runtime = FunctionsRuntime(functions)


def tool(function):
    """One of its functions. What goes wrong in it is a ValueError, as the agent is told of it."""

    def run(arguments):
        result, error = runtime.run_function(environment, function.name, arguments)
        if error:
            raise ValueError(error)
        return tool_result_to_str(result)

    offered = Tool(function.name, function.description, run)
    offered.definition["inputSchema"] = function.parameters.model_json_schema()
    return offered


serve(f"{SUITE}-{MODULE}", [tool(function) for function in functions])
