"""A whole deployment in one process, under a virtual clock and a seeded scheduler.

The handlers, the guard and the call policies are those of every day. Time, chance and the network are
simulated, so any run, with whatever went wrong in it, can be had again from its seed.
"""

from runtime.simulation.deployment import SimulatedDeployment, SimulatedNode
from runtime.simulation.loop import Leaked, Stuck, SwallowedFault, simulate
from runtime.simulation.network import Exchange, Fault, Network, Plan
from runtime.simulation.world import SimulatedWorld

__all__ = [
    "Exchange",
    "Fault",
    "Leaked",
    "Network",
    "Plan",
    "SimulatedDeployment",
    "SimulatedNode",
    "SimulatedWorld",
    "Stuck",
    "SwallowedFault",
    "simulate",
]
