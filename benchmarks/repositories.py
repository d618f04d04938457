"""Twenty public repositories that train something, each at one commit: what fixes are tried on, and read by a person.

Their code is not kept here. ``python -m benchmarks.fixing --public FOLDER --clone`` gets what is missing, which is, for each:

    git clone --no-checkout https://github.com/OWNER/NAME FOLDER/NAME && git -C FOLDER/NAME checkout COMMIT
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

_HOST = "https://github.com"


class Repository(NamedTuple):
    """A repository by owner and name, the commit that is read, and what it trains."""

    slug: str
    commit: str
    trains: str

    @property
    def name(self) -> str:
        """Also of its directory."""
        return self.slug.split("/")[1]


REPOSITORIES = (
    Repository(
        "pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8", "a bit of everything, with DDP and FSDP"
    ),
    Repository("weiaicunzai/pytorch-cifar100", "11d8418f415b261e4ae3cb1ffe20d06ec95b98e4", "image classification"),
    Repository(
        "selimsef/dfdc_deepfake_challenge", "89c6290490bac96b29193a4061b3db9dd3933e36", "a Kaggle winner, with DDP"
    ),
    Repository("facebookresearch/moco", "132aea9da9bb995a411c915c0420be3db62052f3", "contrastive learning, with DDP"),
    Repository("VainF/DeepLabV3Plus-Pytorch", "4e1087de98bc49d55b9239ae92810ef7368660db", "segmentation"),
    Repository("ultralytics/yolov5", "5081342f04fb287fc2e5f2b5a4e06752b7937b1c", "detection"),
    Repository("leftthomas/SRGAN", "7ddfdf27273c42d858ec52cab5ca1cbfca81d0be", "super-resolution"),
    Repository("eriklindernoren/PyTorch-GAN", "36d3c77e5ff20ebe0aeefd322326a134a279b93e", "GANs"),
    Repository("AntixK/PyTorch-VAE", "a6896b944c918dd7030e7d795a8c13e5c6345ec7", "VAEs, with Lightning"),
    Repository("lucidrains/denoising-diffusion-pytorch", "faed4db28e724735323fa91c70aa9b28a6e1cbac", "diffusion"),
    Repository("karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26", "a small language model"),
    Repository("Lightning-AI/litgpt", "26857050fe3ff627cd714fe92f5838f51a3d5efa", "language models, with Fabric"),
    Repository("kamalkraj/BERT-NER", "e5be564156f194f1becb0d82aeaf6e762d9eb9ed", "fine-tuning of a language model"),
    Repository(
        "bentrevett/pytorch-sentiment-analysis", "329f654b2cfaed22fee432569ebd7a2674584f79", "text, in notebooks"
    ),
    Repository("NVIDIA/tacotron2", "185cd24e046cc1304b4f8e564734d2498c6e2e6f", "speech"),
    Repository("thuml/Autoformer", "51c7d416ae120b805fd5beef2f4ccf7de496a6ff", "time series"),
    Repository("Diego999/pyGAT", "3664f2dc90cbf971564c0bf186dc794f12446d0c", "a graph network"),
    Repository("dragen1860/MAML-Pytorch", "98a00d41724c133bd29619a2fb2cc46dd128a368", "meta learning"),
    Repository("vwxyzjn/cleanrl", "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb", "reinforcement learning"),
    Repository(
        "ashleve/lightning-hydra-template",
        "bddbc24b82ab6ccfa6243e815a49dc5bfe8d4144",
        "a template, with Lightning and Hydra",
    ),
)


def clone(repository: Repository, folder: Path, host: str = _HOST) -> str:
    """Clone a repository into its directory there; the message of git if that fails."""
    target = folder / repository.name
    return _git("clone", "--quiet", "--no-checkout", f"{host}/{repository.slug}", str(target)) or _git(
        "-C", str(target), "-c", "advice.detachedHead=false", "checkout", "--quiet", repository.commit
    )


def moved(repository: Repository, folder: Path) -> str:
    """At which other commit a clone is; empty if it is where it should be, or is no clone but only the code."""
    target = folder / repository.name
    if not (target / ".git").exists():
        return ""
    ran = subprocess.run(["git", "-C", str(target), "rev-parse", "HEAD"], check=False, capture_output=True, text=True)
    return "" if ran.stdout.strip() == repository.commit else f"is at {ran.stdout.strip() or 'no commit'}"


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True)
    return "" if ran.returncode == 0 else ran.stderr.strip() or f"git ended with status {ran.returncode}"
