package token

import (
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
)

func store(token int64, value string) {}

func dropped(l *holdfast.Lease) {
	l.Token()     // want `the fencing token is dropped`
	_ = l.Token() // want `the fencing token is dropped`
}

func logged(l *holdfast.Lease) {
	token := l.Token() // want `goes nowhere but into a log`
	log.Printf("token %d", token)
	fmt.Println("token", token)
}

func used(l *holdfast.Lease) {
	token := l.Token()
	log.Printf("token %d", token)
	store(token, "x")
	store(l.Token(), fmt.Sprint(l.Token()))
}
