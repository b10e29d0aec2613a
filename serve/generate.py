"""Extraction in process, with transformers: what evaluation, the export's proof and `mnemosmith extract FOLDER` use.

Decoding is greedy and, unless `guided` is off, bound to the contract's JSON schema by a grammar that admits exactly the
white space that `render` prints, or to the contract's own grammar for each input, so that the text equals what a server
under the same schema prints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Literal

from extractors.chat import end_of_turn
from extractors.contract import Extractor, Input, InputError, Output
from serve.answers import SEPARATORS, Answer, chat_messages, failed_request, read_answer

GRAMMAR_CACHE = 256 * 2**20  # bytes of compiled grammars; one for an input seldom comes back


class Generator(Generic[Input, Output]):
    """A model that answers an extractor's prompts.

    model: folder or hub id; adapter: a PEFT folder put on top, unmerged (its tokenizer and chat template are used
    where it has them); quantization: "nf4" loads the base in 4 bit with double quantisation and computes in `dtype`;
    device: None takes the GPU where there is one; max_tokens: None takes the contract's; threads: None leaves torch's
    setting alone.
    """

    def __init__(
        self,
        model: str | Path,
        extractor: Extractor[Input, Output],
        *,
        adapter: Path | None = None,
        quantization: Literal["nf4"] | None = None,
        dtype: str = "float32",
        device: str | None = None,
        guided: bool = True,
        batch_size: int = 16,
        max_tokens: int | None = None,
        threads: int | None = None,
    ):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, GenerationConfig

        if batch_size < 1:
            raise InputError(f"`batch_size` is {batch_size}: write 1 or more.")
        if threads is not None:
            torch.set_num_threads(threads)
        self.extractor = extractor
        self.batch_size = batch_size
        self.max_tokens = max_tokens or extractor.decoding.max_tokens
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))

        with_tokenizer = adapter is not None and (Path(adapter) / "tokenizer_config.json").is_file()
        self.tokenizer = AutoTokenizer.from_pretrained(str(adapter if with_tokenizer else model))
        loading: dict[str, Any] = {"dtype": getattr(torch, dtype)}
        if quantization == "nf4":
            loading["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=True,
                bnb_4bit_quant_type="nf4",
                bnb_4bit_use_double_quant=True,
                bnb_4bit_compute_dtype=getattr(torch, dtype),
            )
            loading["device_map"] = {"": str(self.device)}
        self.model: Any = AutoModelForCausalLM.from_pretrained(str(model), **loading)
        stated = self.model.generation_config.eos_token_id
        if adapter is not None:
            from peft import PeftModel

            self.model = PeftModel.from_pretrained(self.model, str(adapter))
        if quantization is None:
            self.model.to(self.device)
        self.model.eval()

        ends = stated if isinstance(stated, list) else [stated]
        ends = [
            *ends,
            self.tokenizer.eos_token_id,
            end_of_turn(self.tokenizer, extractor.decoding.chat_template_kwargs),
        ]
        self.stop_ids: list[int] = sorted({token for token in ends if token is not None})
        if not self.stop_ids:
            raise InputError(
                f"{model}: neither its generation config, its tokenizer nor its chat template ends a turn."
            )
        pad = self.tokenizer.pad_token_id
        self.pad_id: int = self.stop_ids[0] if pad is None else pad
        self.context: int | None = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        # The base model's own config samples, some add a repetition penalty: nothing of it may reach greedy decoding.
        self.model.generation_config = GenerationConfig(
            do_sample=False,
            eos_token_id=self.stop_ids,
            pad_token_id=self.pad_id,
            stop_strings=list(extractor.decoding.stop) or None,
        )
        self._compiler: Any = self._grammar_compiler() if guided else None
        self.grammar: Any = self._json_grammar() if guided and extractor.grammar is None else None

    def prompt_ids(self, value: Input, shots: Sequence[tuple[Input, Output]] = ()) -> list[int]:
        """Token ids of the prompt, with the contract's template arguments and the generation prompt."""
        ids: list[int] = self.tokenizer.apply_chat_template(
            chat_messages(self.extractor, value, shots),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            **self.extractor.decoding.chat_template_kwargs,
        )["input_ids"]
        return ids

    def generate(
        self,
        inputs: Sequence[Input],
        shots: Sequence[tuple[Input, Output]] = (),
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[Answer[Output]]:
        """Answers in the order of `inputs`. shots: worked examples put before every input (few-shot); on_progress is
        called with (rows done, rows in all) after each batch. A prompt that fills the model's context fails as
        `request`.
        """
        prompts = [self.prompt_ids(value, shots) for value in inputs]
        answers: dict[int, Answer[Output]] = {}
        todo = []
        for place, prompt in enumerate(prompts):
            if self.context is not None and len(prompt) >= self.context:
                detail = f"the prompt of {len(prompt)} tokens leaves no room in the model's context of {self.context}"
                answers[place] = failed_request(detail, len(prompt))
            else:
                todo.append(place)
        todo.sort(key=lambda place: -len(prompts[place]))  # longest first: memory trouble shows at once
        for start in range(0, len(todo), self.batch_size):
            batch = todo[start : start + self.batch_size]
            grammars = [self.grammar_for(inputs[place]) for place in batch]
            for place, (text, reason, tokens) in zip(
                batch, self._batch([prompts[place] for place in batch], grammars), strict=True
            ):
                answers[place] = read_answer(
                    self.extractor, text, reason, prompt_tokens=len(prompts[place]), completion_tokens=tokens
                )
            if on_progress is not None:
                on_progress(len(answers), len(prompts))
        return [answers[place] for place in range(len(prompts))]

    def grammar_for(self, value: Input) -> Any:
        """The compiled grammar that binds the answer to an input; None where decoding is free."""
        text = self.extractor.grammar_for(value) if self._compiler is not None else None
        return self.grammar if text is None else self._compiler.compile_grammar(text)

    def _batch(self, prompts: Sequence[list[int]], grammars: Sequence[Any]) -> list[tuple[str, str, int]]:
        """(text, finish_reason, completion tokens) of each prompt; rows are padded on the left and masked by length,
        since the padding token of some models is their end of turn."""
        import torch
        from transformers import LogitsProcessorList

        width = max(len(prompt) for prompt in prompts)
        ids = torch.tensor([[self.pad_id] * (width - len(prompt)) + prompt for prompt in prompts], device=self.device)
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=self.device)
        room = self.max_tokens if self.context is None else min(self.max_tokens, self.context - width)
        processors = LogitsProcessorList()
        if self._compiler is not None:
            from xgrammar.contrib.hf import LogitsProcessor

            processors.append(LogitsProcessor(list(grammars)))  # holds the state of one batch
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=room,
                logits_processor=processors,
                tokenizer=self.tokenizer if self.extractor.decoding.stop else None,
            )
        return [self._read(row[width:].tolist()) for row in output]

    def _read(self, tokens: list[int]) -> tuple[str, str, int]:
        end = next((place for place, token in enumerate(tokens) if token in self.stop_ids), None)
        text = self.tokenizer.decode(tokens[:end], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        cuts = [place for stop in self.extractor.decoding.stop if (place := text.find(stop)) >= 0]
        if cuts:
            return text[: min(cuts)], "stop", len(tokens)
        if end is None:
            return text, "length", len(tokens)
        return text, "stop", end + 1

    def _grammar_compiler(self) -> Any:
        import xgrammar

        vocabulary = self.model.get_output_embeddings().weight.shape[0]  # may be padded beyond the tokenizer's
        info = xgrammar.TokenizerInfo.from_huggingface(
            self.tokenizer, vocab_size=vocabulary, stop_token_ids=self.stop_ids
        )
        return xgrammar.GrammarCompiler(info, cache_limit_bytes=GRAMMAR_CACHE)

    def _json_grammar(self) -> Any:
        return self._compiler.compile_json_schema(
            json.dumps(self.extractor.json_schema), any_whitespace=False, separators=SEPARATORS
        )
