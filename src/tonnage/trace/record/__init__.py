"""Recording a program: torch is imported only here."""
