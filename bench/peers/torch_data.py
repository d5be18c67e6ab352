"""PyTorch's DataLoader, where it has the like: batches of rows in memory in random order, and of
sequences filled up. Without workers, which is faster here: theirs are processes."""

import common as c
import pipelines as p

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.set_num_threads(c.THREADS)


def rate(loader, rows, check):
    def epoch():
        return sum(len(batch) for batch in loader)

    return lambda: p.rate(epoch, rows, rows, check)


def shuffle_batch():
    """The sampler shuffles all, and whole batches are gathered (batch_size=None)."""
    pictures = TensorDataset(torch.from_numpy(p.pictures()))
    batches = torch.utils.data.BatchSampler(
        torch.utils.data.RandomSampler(pictures), batch_size=128, drop_last=False)
    loader = DataLoader(pictures, sampler=batches, batch_size=None)

    def epoch():
        return sum(len(batch) for (batch,) in loader)

    check = float(sum(batch.double().sum() for (batch,) in loader))
    return lambda: p.rate(epoch, p.PICTURES, p.PICTURES, check)


class Sequences(Dataset):
    def __init__(self):
        self.lengths = p.lengths().tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.full((self.lengths[i],), self.lengths[i])


def padded_batch():
    loader = DataLoader(Sequences(), batch_size=64,
                        collate_fn=lambda rows: pad_sequence(rows, batch_first=True))
    check = float(sum(float(b.double().sum()) + 1e-3 * b.shape[1] for b in loader))
    return rate(loader, p.SEQUENCES, check)


ROWS = (shuffle_batch, padded_batch)
c.serve({row.__name__: c.Lazy(row) for row in ROWS}, f"DataLoader of PyTorch {torch.__version__}")
