# The program behind `python` of fork_server.py, which writes SERVER and PYTHON above these lines: it runs `python` with its
# arguments in a fork of the server, with the streams, the variables and the folder of this process, and ends as the fork does.
import array
import json
import os
import signal
import socket
import struct
import sys


def is_supported(arguments):
    """Whether a fork does what the interpreter does: [-W FILTER | -u]... then a script, -m MODULE or -c CODE."""
    while arguments[:1] in (["-W"], ["-u"]):
        arguments = arguments[2 if arguments[0] == "-W" else 1:]
    return bool(arguments) and (not arguments[0].startswith("-") or arguments[0] in ("-m", "-c"))


def receive(server, size):
    found = b""
    while len(found) < size:
        more = server.recv(size - len(found))
        if not more:
            sys.exit("fork_client: the server ended the process without its exit code")
        found += more
    return struct.unpack("i", found)[0]


def main():
    server = socket.socket(socket.AF_UNIX)
    try:
        if not is_supported(sys.argv[1:]):
            raise OSError
        server.connect(SERVER)  # noqa: F821
    except OSError:
        os.execv(PYTHON, [PYTHON, *sys.argv[1:]])  # noqa: F821
    request = json.dumps({"arguments": sys.argv[1:], "variables": dict(os.environ), "folder": os.getcwd()}).encode()
    streams = socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2])
    server.sendmsg([struct.pack("i", len(request))], [streams])
    server.sendall(request)
    child = receive(server, 4)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: os.kill(child, number))
    code = receive(server, 4)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
