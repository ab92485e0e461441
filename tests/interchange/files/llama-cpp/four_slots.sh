./build/bin/llama-server -m models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf \
  -c 32768 -np 4 -ngl 99 -fa on -ctk q8_0 -ctv q8_0 --host 0.0.0.0 --port 8080 -t 8 --jinja
