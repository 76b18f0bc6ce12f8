"""Reads the CloudFormation templates of this folder as a deployment does: parameters, then values.

`deployed()` resolves what needs no account: parameters and their defaults, conditions, Sub, Join,
Select, Split, FindInMap, and imports from the other templates. What only AWS knows (the ARN of a
resource) becomes a name such as `queues.OrderEvents.Arn`, the same everywhere.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
#: What only some accounts need.
OPTIONAL = {"foundation", "deployer"}
_ABSENT = object()

#: Stands for the account that a template is created in.
PSEUDO_PARAMETERS = {
    "AWS::Partition": "aws",
    "AWS::Region": "ap-southeast-3",
    "AWS::AccountId": "123456789012",
    "AWS::NoValue": _ABSENT,
}


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms: `!Ref x` is `{"Ref": "x"}`."""


def _short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any = None
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt":
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


@dataclass(frozen=True)
class Template:
    """One file, as it is written."""

    name: str
    document: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.document.get("Parameters", {})

    @property
    def resources(self) -> Mapping[str, Any]:
        return self.document["Resources"]

    @property
    def exports(self) -> Iterator[tuple[Any, Any]]:
        """The name and the value of each export, unresolved."""
        for output in self.document.get("Outputs", {}).values():
            if "Export" in output:
                yield output["Export"]["Name"], output["Value"]


@cache
def load(name: str) -> Template:
    """Read `name`.yaml."""
    text = (FOLDER / f"{name}.yaml").read_text()
    return Template(name, yaml.load(text, Loader=_Loader))  # noqa: S506  (a SafeLoader)


def names() -> list[str]:
    """Return the names of all templates."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@dataclass(frozen=True)
class Deployed:
    """All templates with one set of parameters."""

    given: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def templates(self) -> dict[str, Template]:
        return {name: load(name) for name in names()}

    @cached_property
    def _exports(self) -> dict[str, tuple[str, Any]]:
        return {
            self._resolve(export, template): (template.name, value)
            for template in self.templates.values()
            for export, value in template.exports
        }

    def resources(self, type_: str, template: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the resolved properties of all resources of a type by their logical ids."""
        return {
            logical_id: self._resolve(resource.get("Properties", {}), source)
            for source in self.templates.values()
            if template in (None, source.name)
            for logical_id, resource in source.resources.items()
            if resource["Type"] == type_ and self._wanted(resource, source)
        }

    def resource(self, template: str, logical_id: str) -> dict[str, Any]:
        """Return the resolved properties of one resource."""
        source = self.templates[template]
        resolved: dict[str, Any] = self._resolve(source.resources[logical_id]["Properties"], source)
        return resolved

    def parameter(self, template: Template, name: str) -> Any:
        """Return what the parameter is given, its default, or its name where it has none."""
        if name in self.given:
            return self.given[name]
        return template.parameters[name].get("Default", f"<{name}>")

    def _wanted(self, resource: Mapping[str, Any], template: Template) -> bool:
        return "Condition" not in resource or self._condition(resource["Condition"], template)

    def _condition(self, name: str, template: Template) -> bool:
        return bool(self._resolve(template.document["Conditions"][name], template))

    def _resolve(self, value: Any, template: Template) -> Any:
        if isinstance(value, list):
            resolved = (self._resolve(item, template) for item in value)
            return [item for item in resolved if item is not _ABSENT]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            function, argument = next(iter(value.items()))
            if function == "Condition" and isinstance(argument, str):
                return self._condition(argument, template)
            if function == "Ref" or function.startswith("Fn::"):
                return self._call(function.removeprefix("Fn::"), argument, template)
        pairs = ((key, self._resolve(item, template)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not _ABSENT}

    def _call(self, function: str, argument: Any, template: Template) -> Any:
        if function == "Ref":
            return self._ref(argument, template)
        if function == "GetAtt":
            return f"{template.name}.{'.'.join(argument)}"
        if function == "If":
            name, then, otherwise = argument
            chosen = then if self._condition(name, template) else otherwise
            return self._resolve(chosen, template)
        argument = self._resolve(argument, template)
        match function:
            case "Sub":
                text, own = argument if isinstance(argument, list) else (argument, {})
                return re.sub(
                    r"\$\{([^}!]+)\}",
                    lambda m: str(own[m[1]] if m[1] in own else self._ref(m[1], template)),
                    text,
                )
            case "ImportValue":
                owner, exported = self._exports[argument]
                return self._resolve(exported, self.templates[owner])
            case "Equals":
                return str(argument[0]) == str(argument[1])  # as CloudFormation does
            case "Not":
                return not argument[0]
            case "Or":
                return any(argument)
            case "And":
                return all(argument)
            case "Join":
                return argument[0].join(argument[1])
            case "Select":
                return argument[1][int(argument[0])]
            case "GetAZs":
                return ["a", "b", "c"]
            case "Cidr":
                network, count, bits = argument
                found = ip_network(network).subnets(new_prefix=32 - bits)
                return [str(next(found)) for _ in range(count)]
            case "Split":
                return argument[1].split(argument[0])
            case "FindInMap":
                mapping, first, second = argument
                return template.document["Mappings"][mapping][first][second]
        raise NotImplementedError(function)

    def _ref(self, name: str, template: Template) -> Any:
        if name in PSEUDO_PARAMETERS:
            return PSEUDO_PARAMETERS[name]
        if name in template.parameters:
            return self.parameter(template, name)
        logical_id = name.split(".")[0]
        if logical_id not in template.resources:
            raise KeyError(f"{template.name}.yaml refers to {name}, which it does not have")
        return f"{template.name}.{name}"


def deployed(**parameters: Any) -> Deployed:
    """Return all templates as if created with these parameters."""
    return Deployed(parameters)
