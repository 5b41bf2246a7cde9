"""A model repository on the Hugging Face Hub: the files that transformers loads, a card, and the run itself.

    README.md  config.json  modeling_abacist.py  model.safetensors  tokenizer.json …  run/run.json …

If transformers cannot express the model, the repository holds only the card and the run.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from abacist import files
from abacist.errors import ConfigurationError
from abacist.export import exportable, transformers
from abacist.export.exportable import Exportable
from abacist.export.model_card import card
from abacist.runs import hub
from abacist.runs.public_files import public_files
from abacist.runs.run import Run


@dataclass(frozen=True)
class Repository:
    """What a repository holds."""

    exportable: Exportable
    """The run."""
    contents: dict[str, bytes]
    """Content of each file by its path."""
    obstacle: str
    """Why transformers cannot load the model; empty if it can."""


def repository(run: Run) -> Repository:
    """Return the repository of a run."""
    contents = {
        f"{hub.RUN_FOLDER}/{name}": data for name, data in public_files(run.directory).items()
    }
    try:
        exported = exportable.of_run(run, "transformers")
    except ConfigurationError as error:
        # Every recipe can be expressed in ONNX, so this finds the certificate of every run.
        exported = exportable.of_run(run, "onnx")
        page = card(exported, is_transformers=False, has_run=True)
        return Repository(exported, contents | {"README.md": page.encode()}, _obstacle(error))
    return Repository(exported, contents | transformers.folder(exported, has_run=True), "")


def push(contents: Repository, name: str, private: bool = False) -> str:
    """Upload to the repository `name`, USER/NAME, create it if necessary, and return its address.

    Raises `UserError` if the name is wrong, or huggingface_hub is missing or fails.
    """
    hub.check_repository(name)
    hub.check_installed()
    from huggingface_hub import HfApi

    recipe, seed = contents.exportable.run.recipe.name, contents.exportable.run.seed
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "repository")
        files.write_directory(folder, contents.contents)
        with hub.one_line_errors(f"cannot push to {name}"):
            api = HfApi()
            address = api.create_repo(name, private=private, exist_ok=True)
            # One commit, so that a reader never finds half of it. Whatever an earlier push of another
            # recipe has left would be taken for a part of this model.
            api.upload_folder(
                repo_id=name,
                folder_path=folder,
                commit_message=f"Upload the run {recipe}, seed {seed}",
                delete_patterns=[f"{hub.RUN_FOLDER}/*", *transformers.FILES],
            )
    return str(address)


def _obstacle(error: ConfigurationError) -> str:
    """Return the clause of an error that says which setting transformers cannot express."""
    return str(error).partition(": ")[2].partition(". ")[0]
