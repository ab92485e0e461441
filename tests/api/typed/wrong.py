"""What users get wrong: `mypy --strict` and pyright find each line that ends in `# wrong`, and no other."""

import tonnage

ON = "8xH100-SXM-80GB"
tonnage.train("gpt2", on=ON, seq_length=1024)  # wrong
tonnage.train("gpt2", on=ON, sequence_length="1k")  # wrong
tonnage.train("gpt2", on=ON, tp=2)  # wrong
tonnage.train("gpt2", on=ON, concurrency=2)  # wrong
tonnage.train("gpt2")  # wrong
tonnage.train("gpt2", on=ON, recompute=True)  # wrong
tonnage.serve("gpt2", on=ON, users=4)  # wrong
tonnage.serve("gpt2", on=ON, micro_batch_size=4)  # wrong
tonnage.serve("gpt2", on=ON, concurrency=4.5)  # wrong
tonnage.maximum("context", "gpt2", on=ON, advise=False)  # wrong
tonnage.maximum("context", "gpt2", on=ON, verb="training")  # wrong
tonnage.compare("gpt2", ON, users=[1, 2])  # wrong
tonnage.plan_training("gpt2", gbs=8)  # wrong
tonnage.plan_serving("gpt2", usrs=8)  # wrong
tonnage.train_many([{"model": "gpt2", "on": ON}], mbs=2)  # wrong
tonnage.rule("A6", seq=1024)  # wrong
tonnage.options("explain")  # wrong
tonnage.max("context", "gpt2", on=ON)  # wrong

answer = tonnage.train("gpt2", on=ON)
print(answer.run.mfu)  # wrong
print(answer.memory.valu)  # wrong
print(answer.memry)  # wrong
print(answer.serving.tpot.value)  # wrong
text: str = answer.needed_bytes  # wrong
