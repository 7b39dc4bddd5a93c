package integrations_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast"
)

// oneCallAtATime is an interceptor that lets a customer have one call at a time, on all hosts
// together. A second call waits for a while, and then gets ResourceExhausted; while Redis is away,
// each gets Unavailable. The context of the call ends when the lease is lost.
func oneCallAtATime(client *holdfast.Client, wait time.Duration,
	customer func(context.Context) string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		lease, err := client.Mutex("customer:"+customer(ctx), holdfast.WithWait(wait)).Lock(ctx)
		switch {
		case errors.Is(err, holdfast.ErrHeld):
			return nil, status.Error(codes.ResourceExhausted, "another call of yours is being served")
		case ctx.Err() != nil:
			return nil, status.FromContextError(ctx.Err()).Err()
		case err != nil:
			log.Print(err) // it may name the holder and the server, which is nothing for the customer
			return nil, status.Error(codes.Unavailable, "try again later")
		}
		defer lease.Release() // works although the call is over
		ctx, cancel := lease.Bind(ctx)
		defer cancel()
		return handler(ctx, request)
	}
}

// An interceptor for gRPC: one call a customer at a time. Take the customer from who has signed in,
// not from what anybody can write into the metadata.
func Example_gRPC() {
	_, client, end := connect()
	defer end()

	entered, leave := make(chan struct{}), make(chan struct{})
	bill := func(order string) {
		if order == "slow" {
			entered <- struct{}{}
			<-leave
		}
	}
	patient, endPatient := host(oneCallAtATime(client, time.Minute, customer), bill)
	defer endPatient()
	hasty, endHasty := host(oneCallAtATime(client, 50*time.Millisecond, customer), bill)
	defer endHasty()

	first := make(chan codes.Code)
	go func() { first <- call(patient, "42", "slow") }()
	<-entered
	fmt.Println("customer 42 again:", call(hasty, "42", "quick"))
	fmt.Println("customer 43:", call(patient, "43", "quick"))
	close(leave)
	fmt.Println("the first:", <-first)
	// Output:
	// customer 42 again: ResourceExhausted
	// customer 43: OK
	// the first: OK
}

func customer(ctx context.Context) string {
	return metadata.ValueFromIncomingContext(ctx, "customer")[0]
}

// host serves orders behind an interceptor, and returns a connection to itself.
func host(interceptor grpc.UnaryServerInterceptor, bill func(order string)) (conn *grpc.ClientConn, end func()) {
	server := grpc.NewServer(grpc.UnaryInterceptor(interceptor))
	server.RegisterService(orders(bill), nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return conn, func() {
		conn.Close()
		server.Stop()
	}
}

// call bills an order. It calls again while Redis has no time to answer.
func call(conn *grpc.ClientConn, customer, order string) codes.Code {
	ctx := metadata.AppendToOutgoingContext(context.Background(), "customer", customer)
	for {
		err := conn.Invoke(ctx, "/Orders/Bill", wrapperspb.String(order), &wrapperspb.StringValue{})
		if code := status.Code(err); code != codes.Unavailable {
			return code
		}
	}
}

// orders is what protoc would generate from a service with one method.
func orders(bill func(order string)) *grpc.ServiceDesc {
	method := func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any,
		error) {
		order := &wrapperspb.StringValue{}
		if err := decode(order); err != nil {
			return nil, err
		}
		handler := func(context.Context, any) (any, error) {
			bill(order.GetValue())
			return order, nil
		}
		return interceptor(ctx, order, &grpc.UnaryServerInfo{FullMethod: "/Orders/Bill"}, handler)
	}
	return &grpc.ServiceDesc{ServiceName: "Orders", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Bill", Handler: method}}}
}
