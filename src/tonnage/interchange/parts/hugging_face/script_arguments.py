"""What scripts take beside TrainingArguments: data, lengths of sequences, and names that many training scripts have."""

from typing import Any

from tonnage.interchange.parts.hugging_face import hf_model, training_arguments
from tonnage.interchange.parts.hugging_face.keys import put_mapping
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.shell import program_name

# Lengths of sequences: transformers' examples, TRL before 0.20, and scripts of many.
LENGTHS = names(
    "max_length max_seq_length max_seq_len block_size model_max_length seq_length sequence_length cutoff_len"
)
DATA = names(
    "dataset_name dataset_config_name dataset_config dataset_train_split dataset_test_split dataset_streaming "
    "train_file validation_file test_file max_train_samples max_eval_samples streaming overwrite_cache "
    "validation_split_percentage preprocessing_num_workers keep_linebreaks data_path eval_data_path lazy_preprocess "
    "dataset_text_field dataset_num_proc dataset_kwargs ignore_bias_buffers chat_template_path eos_token pad_token "
    "shuffle_dataset truncation_mode completion_only_loss assistant_only_loss dataset_mixer dataset_splits "
    "chat_template system_prompt dataset datasets data_dir max_samples preprocessing_only wandb_entity "
    "dataset_prompt_column callbacks benchmarks hub_model_revision wandb_run_group code_language "
    "splits chat_template_format add_special_tokens append_concat_token test_split_size dataset_configs"
)
LISTS = frozenset(
    names(
        "report-to lora-target-modules lora-modules-to-save lora-target-parameters fsdp label-names debug "
        "include-for-metrics loss-type loss-weights reward-weights reward-funcs reward-model-name-or-path "
        "optim-target-modules"
    )
)
MAPPINGS = names(
    "deepspeed fsdp_config accelerator_config gradient_checkpointing_kwargs lr_scheduler_kwargs model_init_kwargs "
    "dataset_kwargs liger_kernel_config generation_kwargs chat_template_kwargs parallelism_config "
    "activation_checkpointing_kwargs"
)
# Scripts of transformers' examples/pytorch/language-modeling, which load weights as from_pretrained does.
EXAMPLES = ("run_clm.py", "run_mlm.py", "run_clm_no_trainer.py", "run_fim.py", "run_plm.py")


def arguments_of(words: tuple[str, ...]) -> dict[str, Any]:
    """The options of a script, as HfArgumentParser has them: names with underscores, `--no_X` for false."""
    options, alone = options_of_command(words, several=LISTS)
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        plain = name.replace("-", "_")
        positive = plain.removeprefix("no_")
        is_off = value is True and positive != plain and positive in BOOLEANS
        last = value[-1] if isinstance(value, list) and name not in LISTS else value
        arguments[positive if is_off else plain] = False if is_off else last
    for at, word in enumerate(alone):
        arguments[f"argument {at + 1}"] = word
    for name in MAPPINGS:
        put_mapping(arguments, name)
    return arguments


BOOLEANS = frozenset(
    (*training_arguments.HARMLESS, *training_arguments.DECIDING, *hf_model.KEYS, *names("packing padding_free"))
)


def read_length(r: Reading, keys: tuple[str, ...] = LENGTHS) -> bool:
    """The length of sequences, where the file has it under one of its names."""
    key = next((key for key in keys if r.has(key)), "")
    if key:
        r.put("sequence_length", r.positive(key), key)
        r.ignore([other for other in keys if other != key], why="the other length counts")
    return bool(key)


def is_example(script: str) -> bool:
    """Whether it is a script of transformers' own examples for language models."""
    return program_name(script) in EXAMPLES
