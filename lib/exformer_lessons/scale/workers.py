"""Two processes of a CPU that share a batch in unequal shards, and take the gradient that one would take.

python -m exformer_lessons.scale.workers
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from exformer_lessons.facts import Facts
from exformer_lessons.scale.models import new_model, value_loss

SHARDS = (2, 6)  # facts of each worker


def gradient(keys: Tensor, values: Tensor) -> Tensor:
    """Return the gradient of the summed loss, all parameters as one vector, in double precision."""
    model = new_model(8, 0).double()
    (value_loss(model, (keys, values)) * len(values)).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def work(rank: int, folder: str) -> None:
    """Compute the gradient of this worker's shard, add up with the others, and write what it holds."""
    dist.init_process_group(
        "gloo", init_method=Path(folder, "met").as_uri(), rank=rank, world_size=len(SHARDS)
    )
    keys, values = (part.split(SHARDS)[rank] for part in next(Facts().batches(1, size=sum(SHARDS), seed=0)))
    total, count = gradient(keys, values), torch.tensor(len(values))
    mean = total / count
    dist.all_reduce(total)
    dist.all_reduce(count)
    dist.all_reduce(mean)
    torch.save({"all-reduce": total / count, "two means": mean / len(SHARDS)}, Path(folder, f"{rank}.pt"))
    dist.barrier()
    dist.destroy_process_group()


def differences(folder: str) -> dict[str, list[float]]:
    """Return how far each worker's gradient is from that of one device, relative to its length."""
    mp.spawn(work, args=(folder,), nprocs=len(SHARDS))
    keys, values = next(Facts().batches(1, size=sum(SHARDS), seed=0))
    whole = gradient(keys, values) / len(values)
    held = [torch.load(Path(folder, f"{rank}.pt")) for rank in range(len(SHARDS))]
    return {
        way: [((each[way] - whole).norm() / whole.norm()).item() for each in held]
        for way in ("all-reduce", "two means")
    }


def main() -> None:
    """Start the workers, and say how far they are from one device."""
    with TemporaryDirectory() as folder:
        for way, found in differences(folder).items():
            sys.stdout.write(f"{way}: {', '.join(f'{each:.1g}' for each in found)}\n")


if __name__ == "__main__":
    main()
