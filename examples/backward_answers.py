"""A format: the answer is written backwards, as in `12,18=42` for 24."""

from dataclasses import dataclass
from typing import ClassVar

from abacist import FORMATS, TextFormatConfig


@dataclass(frozen=True, kw_only=True)
class BackwardAnswersConfig(TextFormatConfig):
    """Operands as typed, the answer backwards."""

    kind: ClassVar = "backward-answers"

    def construct(self, task):
        """Return the format; torch is imported only here."""
        from abacist.formats.text import TextFormat
        from abacist.tasks.problems import Texts

        class BackwardAnswers(TextFormat):
            def _target_piece(self, problems, answer):
                backward = [text[::-1] for text in answer.texts()]
                return super()._target_piece(problems, Texts(backward))

            def _read(self, tokens, longest):
                return super()._read(tokens[::-1], longest)

        return BackwardAnswers(self, task)


FORMATS.register("backward-answers", BackwardAnswersConfig())
