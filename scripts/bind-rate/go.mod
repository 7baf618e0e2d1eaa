module bind-rate

go 1.24
