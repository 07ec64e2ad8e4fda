"""The `<system>.<deployment>` argument of a command line, with helpful errors."""

from __future__ import annotations

from typing import NamedTuple

import click

from runtime.model.system import Deployment, System
from runtime.node.systems import UnknownName, deployment_names, find_deployment


class ChosenDeployment(NamedTuple):
    """A deployment and its system."""

    system: System
    deployment: Deployment

    def __str__(self) -> str:
        return f"{self.system.name}.{self.deployment.name}"


class DeploymentType(click.ParamType[ChosenDeployment]):
    """Parameter type: a deployment by its name."""

    name = "system.deployment"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> ChosenDeployment:
        try:
            return ChosenDeployment(*find_deployment(str(value)))
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
