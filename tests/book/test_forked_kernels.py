"""Kernels that fork are those of a reader: nothing of the book is there before a cell imports it."""

import os
import sys
from unittest.mock import patch

import pytest
from forked_kernels import launch

SEEN = """
import os, sys
print([name for name in sys.modules if name.startswith("exformer")])
print([folder for folder in sys.path if "tests" in folder or "_ext" in folder])
print(os.getcwd(), os.getpgrp() == os.getpid(), os.environ["A_NAME"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kernels fork on Linux alone")
def test_a_forked_kernel(tmp_path, monkeypatch) -> None:
    from jupyter_client.manager import start_new_kernel
    from jupyter_client.provisioning import local_provisioner

    monkeypatch.setenv("A_NAME", "given")
    with patch.object(local_provisioner, "launch_kernel", launch):
        manager, client = start_new_kernel(startup_timeout=120, cwd=str(tmp_path))
    process, said = manager.provisioner.process, []
    client.execute_interactive(SEEN, output_hook=lambda message: said.append(message["content"]), timeout=60)
    lines = "".join(each.get("text", "") for each in said).splitlines()
    assert lines == ["[]", "[]", f"{os.path.realpath(tmp_path)} True given"]
    assert process.poll() is None
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    assert process.wait() == -9
