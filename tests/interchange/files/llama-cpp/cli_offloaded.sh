llama-cli -m Llama-3.1-70B-Instruct-Q4_K_M-00001-of-00002.gguf -ngl 40 -c 8192 --temp 0.7 -p "Hello" -no-cnv
