"""Deterministic simulation: a whole deployment in one process, with virtual time and a seeded scheduler.

The handlers, the guard and the call policies are the real ones. Time, random numbers and the network are
simulated, so any run, with all its faults, can be replayed from its seed.
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
