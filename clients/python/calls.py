"""Calls a live bridge with the package that openapi-python-client made of its document."""

import os
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import all_client
from all_client import Client
from all_client.api.demo import demo_add, demo_fail, demo_greet
from all_client.api.everything import everything_echo, everything_get_sum
from all_client.api.files import files_read_text_file
from all_client.api.memory import memory_read_graph
from all_client.models import (
    Content,
    DemoAddBody,
    DemoAddResponse200,
    DemoFailBody,
    DemoGreetBody,
    DemoGreetBodyLanguage,
    EverythingEchoBody,
    EverythingGetSumBody,
    FilesReadTextFileBody,
    FilesReadTextFileResponse200,
    MemoryReadGraphResponse200,
    Problem,
)


def import_everything() -> int:
    """Imports every module that was generated, called or not."""
    names = [module.name for module in walk_packages(all_client.__path__, "all_client.")]
    for name in names:
        import_module(name)
    return len(names)


def first_text(result: object) -> str:
    assert isinstance(result, Content), result
    text = result.content[0].text
    assert isinstance(text, str), result
    return text


def call(client: Client) -> None:
    """Calls a tool of every server, and asserts what it answers."""
    total = demo_add.sync(client=client, body=DemoAddBody(a=40, b=2))
    assert isinstance(total, DemoAddResponse200), total
    assert total.sum_ == 42

    greeting = demo_greet.sync(client=client, body=DemoGreetBody(name="Ada", language=DemoGreetBodyLanguage.DE))
    assert first_text(greeting) == "Guten Tag, Ada!"

    echo = everything_echo.sync(client=client, body=EverythingEchoBody(message="grüße"))
    assert first_text(echo) == "Echo: grüße"

    added = everything_get_sum.sync(client=client, body=EverythingGetSumBody(a=1, b=2))
    assert first_text(added) == "The sum of 1 and 2 is 3."

    hello = Path(os.environ["FILES"]) / "hello.txt"
    read = files_read_text_file.sync(client=client, body=FilesReadTextFileBody(path=str(hello), head=1))
    assert isinstance(read, FilesReadTextFileResponse200), read
    assert read.content == "first"

    graph = memory_read_graph.sync(client=client)
    assert isinstance(graph, MemoryReadGraphResponse200), graph
    assert graph.entities == []


def call_in_vain(client: Client) -> None:
    """Sends wrong arguments, and calls a tool that fails."""
    refused = demo_add.sync_detailed(client=client, body=DemoAddBody(a="x", b=2))  # type: ignore[arg-type]
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, refused
    problem = refused.parsed
    assert isinstance(problem, Problem), problem
    assert problem.code == "invalid-arguments"
    assert [error.pointer for error in problem.errors] == ["/a"]

    failed = demo_fail.sync(client=client, body=DemoFailBody())
    assert isinstance(failed, Problem), failed
    assert failed.code == "tool-error"
    assert failed.content[0].text == "disk full"


def main() -> None:
    modules = import_everything()
    with Client(base_url=os.environ["BRIDGE"]) as client:
        call(client)
        call_in_vain(client)
    print(f"{modules} modules import, all calls are as they should be")


if __name__ == "__main__":
    main()
