"""Calls tools whose arguments have every shape, with the package that openapi-python-client made of their document."""

import os
from importlib import import_module
from pkgutil import walk_packages

import shapes_python_client
from shapes_python_client import Client
from shapes_python_client.api.shapes_python import (
    a_b_c6e7789e,
    anything,
    constant,
    constants_that_are_objects,
    enumeration,
    id_22cbbe2c,
    map_,
    map_at_the_root,
    names,
    names_with_signs,
    no_arguments,
    recursion,
    title_is_a_name,
    tuple_,
    types,
    unions,
)
from shapes_python_client.models import (
    ABC6E7789EBody,
    AnythingBody,
    ConstantBody,
    ConstantsThatAreObjectsBody,
    ConstantsThatAreObjectsBodyOrigin,
    Content,
    EnumerationBody,
    EnumerationBodyMixedType0,
    EnumerationBodyMode,
    EnumerationBodySigns,
    Id22Cbbe2CBody,
    MapAtTheRootBody,
    MapBody,
    MapBodyLabels,
    NamesBody,
    NamesBodyProperties,
    NamesWithSignsBody,
    RecursionBody,
    ShapesPythonRecursionNode,
    TitleIsANameProblem,
    TupleBody,
    TypesBody,
    TypesBodyAnyType3,
    UnionsBody,
    UnionsBodyShapeType1,
)


def import_everything() -> int:
    """Imports every module that was generated, called or not."""
    modules = [module.name for module in walk_packages(shapes_python_client.__path__, "shapes_python_client.")]
    for name in modules:
        import_module(name)
    return len(modules)


def call(client: Client) -> None:
    """Sends arguments that have a schema in the answer too, and gets the same back."""

    def echo(tool, body, **attributes):
        answer = tool.sync(client=client, body=body)
        assert answer is not None and answer.to_dict() == body.to_dict(), answer
        for name, want in attributes.items():
            assert getattr(answer, name) == want, (name, answer)

    leaf = ShapesPythonRecursionNode(label="leaf")
    root = ShapesPythonRecursionNode(label="root", children=[leaf])
    echo(recursion, RecursionBody(root=root))
    echo(constant, ConstantBody(kind="circle", version=1, none=None, flag=True), kind="circle", version=1, none=None, flag=True)
    modes = EnumerationBody(
        mode=EnumerationBodyMode.FAST, mixed=EnumerationBodyMixedType0.A, maybe=None, flags=False, flag=True, signs=EnumerationBodySigns("ä")
    )
    echo(enumeration, modes, maybe=None, flags=False, flag=True)
    echo(types, TypesBody(maybe=None, either=7, any_=TypesBodyAnyType3(), nothing=None), either=7, nothing=None)
    echo(tuple_, TupleBody(point=[1, 2.5], open_=["a"]), point=[1, 2.5])
    echo(anything, AnythingBody(x={"a": [1]}, list_=[1, "b"], bare=None, array=[[]]), list_=[1, "b"])
    echo(unions, UnionsBody(one=1, some=None, list_=["a"], shape=UnionsBodyShapeType1(kind="square", side=2.0)), one=1, list_=["a"])
    echo(map_, MapBody(labels=MapBodyLabels.from_dict({"a": "b"})))
    odd = NamesBody(field_top="1", field_id="2", a_b="3", from_="4", class_="5", self_="6", grüße="7", field_1st="8", tofrom="9", properties=NamesBodyProperties(items="0"))
    echo(names, odd, grüße="7")


def call_untyped(client: Client) -> None:
    """Sends arguments to tools that say nothing of their answers, and finds them in the text."""

    def text(tool, body, want):
        answer = tool.sync(client=client, body=body)
        assert isinstance(answer, Content) and answer.content[0].text == want, answer

    text(map_at_the_root, MapAtTheRootBody.from_dict({"a": 1}), '{"a":1}')
    text(names_with_signs, NamesWithSignsBody(filter_="f", type_="t"), '{"$filter":"f","@type":"t"}')
    text(constants_that_are_objects, ConstantsThatAreObjectsBody(origin=ConstantsThatAreObjectsBodyOrigin(x=0, y=0)), '{"origin":{"x":0,"y":0}}')
    text(title_is_a_name, TitleIsANameProblem(a="x"), '{"a":"x"}')
    text(a_b_c6e7789e, ABC6E7789EBody(a="x"), '{"a":"x"}')
    text(id_22cbbe2c, Id22Cbbe2CBody(a="x"), '{"a":"x"}')
    answer = no_arguments.sync(client=client)
    assert isinstance(answer, Content) and answer.content[0].text == "{}", answer


def main() -> None:
    modules = import_everything()
    with Client(base_url=os.environ["SHAPES"] + "/tools/shapes_python") as client:
        call(client)
        call_untyped(client)
    print(f"{modules} modules import, all shapes come back")


if __name__ == "__main__":
    main()
