"""No network at run time: a study is read and assessed without a socket."""

import subprocess
import sys

#: Refuses whatever is no local socket; names are not resolved either.
GUARD = """\
import socket, sys

def refuse(event, args):
    if event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        raise PermissionError(f"{event} {args}")
    if event in {"socket.connect", "socket.bind"}:
        if args[0].family == socket.AF_UNIX:
            return
        if not str(args[1][0]).startswith(("127.", "::1")):
            raise PermissionError(f"{event} {args[1]}")

sys.addaudithook(refuse)
"""
MAIN = "from patchstudy.cli import main\nsys.exit(main(sys.argv[1:]))\n"


def run(code, *words):
    return subprocess.run(
        [sys.executable, "-c", GUARD + code, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_guard_refuses_what_leaves_this_machine():
    done = run("socket.create_connection(('192.0.2.1', 80), timeout=1)")
    assert "PermissionError: socket." in done.stderr
    done = run("socket.getaddrinfo('example.org', 80)")
    assert "PermissionError: socket.getaddrinfo" in done.stderr


def test_the_block_of_a_study_is_made_without_network(made):
    done = run(MAIN, "text", made())
    assert (done.returncode, done.stderr) == (0, "")
    assert "throughput" in done.stdout
