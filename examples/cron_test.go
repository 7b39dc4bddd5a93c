package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A cron job on many hosts runs on one of them. The min hold keeps the others out for longer than
// their clocks differ, even if the job is done in an instant or its host crashes. Let the min hold
// be shorter than the time from one run to the next. Otherwise it still keeps all hosts out when
// the next run is due, and that run is left out.
func Example_cron() {
	clients, end := hosts("host 1", "host 2", "host 3")
	defer end()

	for i, client := range clients { // each of them at midnight, by its own clock
		nightly := client.Mutex("nightly report", holdfast.WithMinHold(time.Minute), holdfast.WithTTL(time.Minute))
		lease, err := nightly.TryLock(context.Background())
		if errors.Is(err, holdfast.ErrHeld) {
			fmt.Printf("host %d: another one does it\n", i+1)
			continue
		}
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Printf("host %d: sends the report\n", i+1)
		if err := lease.Release(); err != nil {
			log.Print(err)
		}
	}
	// Output:
	// host 1: sends the report
	// host 2: another one does it
	// host 3: another one does it
}
