// Package examples shows what to use when, in programs that its tests run. It has tests alone.
//
//   - Example_billOnce: an order that several hosts hear of is billed once;
//   - Example_config: a configuration that many read and one writes;
//   - Example_cron: a cron job on many hosts runs on one of them;
//   - Example_exports: at most n exports run at a time;
//   - fenced: a service with PostgreSQL, whose database refuses a holder that stood still;
//   - price, accessToken, page, dailyReport and thumbnails in flight_test.go: one process makes a
//     value, and the others wait for it;
//   - work, consumeOrders, serveTenants and everyPeriod in shards_test.go: work that is divided by
//     key is spread over all processes;
//   - Example_leader: a leader schedules;
//   - leader: a leader as a program, with the probes of Kubernetes;
//   - Example_middleware: net/http serves one request a customer at a time;
//   - Example_migration: all instances wait for a migration;
//   - steps: the locks of the tutorials fail, and holdfast does not;
//   - Example_transfer: a transfer locks two accounts;
//   - Example_workflow and Example_handOver: a lease goes from process to process;
//   - nameLocker in recipes_test.go: a lock for code that locks and unlocks by a name;
//   - cleanUpOnce, pay and exportRows in fromredsync_test.go: what a service does that comes from
//     redsync.
//
// The module integrations has examples with asynq, gRPC and river. The module moving has those of
// docs/moving.md: how a service leaves another lock library.
//
// The tests in readme_test.go run the code of the README.
package examples
