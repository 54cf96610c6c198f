"""Starts N processes with the variables that launchers set: launch.py [--kill=RANK | --only=RANK] N COMMAND…; exits 1 when one failed."""
import argparse
import os
import signal
import socket
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--kill", type=int, help="a rank that is killed after two seconds")
parser.add_argument("--only", type=int, help="the one rank that is started")
parser.add_argument("world", type=int)
parser.add_argument("command", nargs=argparse.REMAINDER)
arguments = parser.parse_args()

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
environment = {**os.environ, "WORLD_SIZE": str(arguments.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
processes = [subprocess.Popen(arguments.command, env={**environment, "RANK": str(rank)})
             for rank in (range(arguments.world) if arguments.only is None else [arguments.only])]
if arguments.kill is not None:
    time.sleep(2)
    processes[arguments.kill].send_signal(signal.SIGKILL)
codes = [process.wait() for process in processes]
if any(codes):
    print("codes", *codes, file=sys.stderr)
sys.exit(1 if any(codes) else 0)
