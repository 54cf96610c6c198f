"""Our side of torch.distributed's store protocol against PyTorch's, both ways: a job that torchrun starts meets in its store."""
import datetime
import os
import subprocess
from pathlib import Path

import pytest
import torch.distributed as dist

TOOL = Path(os.environ["SPMD_BIN"]).parent / "test" / "bin" / "spmd-store"
TIMEOUT = datetime.timedelta(seconds=20)


def run(port, *commands):
    return subprocess.run([TOOL, str(port), *commands], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("use_libuv", [True, False])
def test_our_client_at_pytorchs_server(use_libuv):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=TIMEOUT, wait_for_workers=False, use_libuv=use_libuv)
    store.set("given", b"by PyTorch")
    assert run(store.port, "get", "given", "set", "taken", "by-us", "add", "count", "2", "missing", "nothing",
               "add", "count", "3") == ["by", "PyTorch", "2", "missing", "5"]
    assert store.get("taken") == b"by-us"
    assert store.add("count", 1) == 6
    # A key that comes while ours waits for it.
    waiting = subprocess.Popen([TOOL, str(store.port), "get", "late"], stdout=subprocess.PIPE, text=True)
    store.set("late", b"now")
    assert waiting.communicate(timeout=30)[0] == "now\n"


def test_pytorchs_client_at_our_server():
    server = subprocess.Popen([TOOL, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        clients = [dist.TCPStore("127.0.0.1", port, is_master=False, timeout=TIMEOUT, wait_for_workers=False)
                   for _ in range(2)]
        clients[0].set("key", b"a\0b" + bytes(100_000))
        assert clients[1].get("key") == b"a\0b" + bytes(100_000)
        assert [client.add("count", 4) for client in clients] == [4, 8]
        assert clients[0].check(["key"]) and not clients[0].check(["nothing"])
        with pytest.raises(dist.DistStoreError):
            clients[1].wait(["nothing"], datetime.timedelta(milliseconds=100))
        assert clients[1].get("count") == b"8"
        assert run(port, "get", "count") == ["8"]
    finally:
        server.stdin.close()
        assert server.wait(timeout=20) == 0
