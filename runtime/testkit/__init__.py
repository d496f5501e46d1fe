"""The test kit: a program driven step by step on either engine, and the samples on which engines are compared."""
