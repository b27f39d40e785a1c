module gateway/flight

go 1.25.0

require github.com/apache/arrow-go/v18 v18.5.0 // indirect
