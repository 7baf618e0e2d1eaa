"""kube-scheduler's default plugins: same names, arguments, reasons and scores."""
