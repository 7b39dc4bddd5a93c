package examples_test

import (
	"context"
	"fmt"
	"log"
	"sync"
)

// Many processes read a configuration in several files, and one writes it. Readers share the lock,
// and see all of the old or all of the new.
func Example_config() {
	clients, end := hosts("reader 1", "reader 2", "writer")
	defer end()
	ctx := context.Background()
	files := [2]string{"old", "old"}

	read := func(client int, inside func()) {
		err := clients[client].RWMutex("config").RDo(ctx, func(context.Context) error {
			inside()
			fmt.Println("read", files[0], files[1])
			return nil
		})
		if err != nil {
			log.Print(err)
		}
	}

	var both, all sync.WaitGroup
	both.Add(2)
	for reader := range 2 {
		all.Go(func() {
			read(reader, func() {
				both.Done()
				both.Wait() // until both readers are inside
			})
		})
	}
	all.Wait()

	err := clients[2].RWMutex("config").Do(ctx, func(context.Context) error {
		files[0] = "new"
		files[1] = "new" // nobody reads in between
		fmt.Println("written")
		return nil
	})
	if err != nil {
		log.Print(err)
	}
	read(0, func() {})
	// Output:
	// read old old
	// read old old
	// written
	// read new new
}
