ollama run gpt-oss:20b
