"""The `<system>.<deployment>` of a command line: told what is wrong with it, and what there is."""

from __future__ import annotations

from typing import NamedTuple

import click

from runtime.model.system import Deployment, System
from runtime.node.systems import UnknownName, deployment_names, find_deployment


class Chosen(NamedTuple):
    """A deployment and the system it is one of."""

    system: System
    deployment: Deployment

    def __str__(self) -> str:
        return f"{self.system.name}.{self.deployment.name}"


class DeploymentType(click.ParamType[Chosen]):
    """Finds a deployment by its name."""

    name = "system.deployment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Chosen:
        try:
            return Chosen(*find_deployment(str(value)))
        except UnknownName as unknown:
            self.fail(str(unknown), param, ctx)


class DeploymentCommand(click.Command):
    """A command whose help lists the deployments that it can be given."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Deployments"):
            for name in deployment_names():
                formatter.write(f"  {name}\n")


deployment_argument = click.argument("chosen", metavar="SYSTEM.DEPLOYMENT", type=DeploymentType())
