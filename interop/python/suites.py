"""Chooses what a connected client does."""

from argparse import Namespace

import checks
import told
import upstreams
from peer import Peer
from report import Complaints, Report


async def run(options: Namespace, report: Report, peer: Peer, complaints: Complaints) -> None:
    if options.told:
        await told.run(peer)
    elif options.upstreams:
        await upstreams.run(report, peer, complaints)
    else:
        await checks.run(report, peer, complaints)
