"""A service in a process of its own, which can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx


class LiveServer:
    """``ttgcd serve`` on a free port."""

    def __init__(self, state: Path, *options: str) -> None:
        self.state, self.options = state, options
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> LiveServer:
        program = "import sys; from ttgcd.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, "serve", "--model", "mini"]
        command += ["--state", str(self.state), "--port", str(self.port), *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return self

    def ready(self, seconds: float = 300.0) -> LiveServer:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, "the service has ended"
            try:
                if httpx.get(f"{self.url}/ready", timeout=5).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError("the service did not get ready")

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)
