module perfolio/tests/oracle/go-load

go 1.21
