"""Where the numbers of a run go: a JSON lines file, TensorBoard, and the terminal."""
