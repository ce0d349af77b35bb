"""Model serving: base and trained models behind one internal chat endpoint, on vLLM."""
