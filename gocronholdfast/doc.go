// Package gocronholdfast lets the schedulers of several hosts share their jobs: it implements the
// Locker and the Elector of gocron v2 with holdfast.
//
// # One lock for each job
//
// With a Locker each run of a job is done by one host, and the hosts share the work:
//
//	locker := gocronholdfast.NewLocker(client, 10*time.Second)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	...
//	_, err = scheduler.NewJob(
//		gocron.CronJob("0 * * * *", false),
//		gocron.NewTask(func(ctx context.Context) error {
//			ctx, cancel := locker.Bind(ctx, "hourly report")
//			defer cancel()
//			return report(ctx)
//		}),
//		gocron.WithName("hourly report"), // the name of the lock
//	)
//
// No host waits: a host that finds the lock held leaves this run out. gocron calls that a lock
// error, and tells its event listener AfterLockError. A host that cannot reach the server leaves
// the run out too. If no host reaches it, nobody runs the job: the safe side of a cron job is not
// to run.
//
// The clocks of hosts differ. A host whose clock is behind would run a short job a second time,
// when it is over on the first host. The min hold prevents that: for so long after its start no
// other host gets the lock, even if the job is done or its host has crashed. Let the min hold be
// longer than the clocks differ, and shorter than the time from one run to the next. Jobs need the
// same start on all hosts: a CronJob has it, and a DurationJob only with gocron.WithStartAt.
//
// # One leader for all jobs
//
// With an Elector one host runs all jobs. Another host replaces it when it crashes or leaves:
//
//	elector := gocronholdfast.NewElector(client, "billing cron")
//	go func() { ended <- elector.Run(ctx) }()
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//
// A tick that falls between two leaders is left out. A tick that falls to the old leader by its
// clock, and to the new one by the clock of the other host, runs twice. A Locker has no such ticks.
//
// # What a job must do
//
// gocron tells a job nothing of its lock. So a job calls Bind, and gives the context to all that it
// does. That context ends when the lock is lost, before another host can get it. It also carries
// the lease, so holdfast.LeaseFrom(ctx) has its fencing token. A job that does not call Bind goes
// on after a loss, and two hosts may then work at once.
package gocronholdfast
