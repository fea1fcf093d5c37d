// One load through github.com/willscott/go-nfs-client: READ, WRITE or GETATTR with so many requests
// in flight on one connection. Its RPC layer is called directly, which costs less than its files.
//
// Arguments: read|write|getattr BLOCK PORT EXPORT PATH FILE_BYTES DEPTH WARMUP_S SECONDS
// Prints what came of it as JSON.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
	"github.com/willscott/go-nfs-client/nfs/xdr"
)

const (
	getattr = 1
	read    = 6
	write   = 7
)

var (
	all     atomic.Uint64
	stopped atomic.Bool
)

type getattrArgs struct {
	rpc.Header
	Handle []byte
}

type readArgs struct {
	rpc.Header
	Handle []byte
	Offset uint64
	Count  uint32
}

type writeArgs struct {
	rpc.Header
	Handle   []byte
	Offset   uint64
	Count    uint32
	Stable   uint32
	Contents []byte
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func cpu() float64 {
	var use syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

func number(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	check(err)
	return value
}

func seconds(text string) time.Duration {
	value, err := strconv.ParseFloat(text, 64)
	check(err)
	return time.Duration(value * float64(time.Second))
}

// stream sends one request after the other until it is told to stop.
func stream(client *rpc.Client, auth rpc.Auth, handle []byte, operation string, block uint32,
	blocks uint64, seed uint64) {
	buffer := make([]byte, block)
	state := seed
	header := func(procedure uint32) rpc.Header {
		return rpc.Header{Rpcvers: 2, Prog: nfs.Nfs3Prog, Vers: nfs.Nfs3Vers, Proc: procedure,
			Cred: auth, Verf: rpc.AuthNull}
	}
	for !stopped.Load() {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		offset := state % blocks * uint64(block)
		var call interface{}
		switch operation {
		case "read":
			call = &readArgs{header(read), handle, offset, block}
		case "write":
			call = &writeArgs{header(write), handle, offset, block, 0, buffer}
		default:
			call = &getattrArgs{header(getattr), handle}
		}
		reply, err := client.Call(call)
		check(err)
		status, err := xdr.ReadUint32(reply)
		check(err)
		if status != 0 {
			check(fmt.Errorf("status %d", status))
		}
		if operation == "read" {
			// Attributes, count, end of file and length come before the data.
			_, err = reply.Seek(-int64(block), io.SeekEnd)
			check(err)
			_, err = io.ReadFull(reply, buffer)
			check(err)
		}
		all.Add(1)
	}
}

func main() {
	if len(os.Args) != 10 {
		check(fmt.Errorf("OPERATION BLOCK PORT EXPORT PATH FILE_BYTES DEPTH WARMUP_S SECONDS"))
	}
	operation, block := os.Args[1], uint32(number(os.Args[2]))
	blocks, depth := number(os.Args[6])/uint64(block), number(os.Args[7])
	client, err := rpc.DialTCP("tcp", "127.0.0.1:"+os.Args[3], false)
	check(err)
	auth := rpc.NewAuthUnix("client-cost", 0, 0).Auth()
	mount := nfs.Mount{Client: client}
	target, err := mount.Mount(os.Args[4], auth)
	check(err)
	_, handle, err := target.Lookup(os.Args[5])
	check(err)
	var streams sync.WaitGroup
	for which := uint64(1); which <= depth; which++ {
		streams.Add(1)
		go func(seed uint64) {
			defer streams.Done()
			stream(client, auth, handle, operation, block, blocks, seed)
		}(which)
	}
	time.Sleep(seconds(os.Args[8]))
	before, cpuBefore, began := all.Load(), cpu(), time.Now()
	time.Sleep(seconds(os.Args[9]))
	fmt.Printf("{\"operations\": %d, \"cpu_s\": %.6f, \"seconds\": %.6f, \"all\": %d}\n",
		all.Load()-before, cpu()-cpuBefore, time.Since(began).Seconds(), all.Load())
	stopped.Store(true)
	streams.Wait()
}
