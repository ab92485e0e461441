"""What each verb answers to a question, whichever face it came from: `answer(given)` has a document and a status."""
