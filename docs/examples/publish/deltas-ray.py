#!/usr/bin/env python3
"""Makes the deltas of a plan with Ray, one delta a task: on this machine, or on the cluster that RAY_ADDRESS names, whose nodes see the channel under
the same path.

    sealift publish os-9.sealift /srv/www/os --deltas last:60 --plan > plan
    python3 deltas-ray.py plan
    sealift publish /srv/www/os --key release --commit
"""

import json
import subprocess
import sys

import ray


@ray.remote(num_cpus=1, max_retries=3)
def make(argv):
    return subprocess.run(argv, check=True).returncode


with open(sys.argv[1]) as plan:
    commands = [json.loads(line)["argv"] for line in plan]
ray.init()
ray.get([make.remote(argv) for argv in commands])
