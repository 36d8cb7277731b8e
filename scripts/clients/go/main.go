// What Go programs do with InfluxDB's clients of versions 2 and 3; each answer on a line of its own, for test_go.py to read.
// Arguments: the server's URL and a token; for TLS a file of certificates as well.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/InfluxCommunity/influxdb3-go/v2/influxdb3"
	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/domain"
)

func main() {
	url, token, roots := os.Args[1], os.Args[2], ""
	if len(os.Args) > 3 {
		roots = os.Args[3]
	}
	if roots == "" {
		check(version2(context.Background(), url, token))
	}
	check(version3(context.Background(), url, token, roots))
}

func version2(ctx context.Context, url, token string) error {
	client := influxdb2.NewClientWithOptions(url, token, influxdb2.DefaultOptions().SetUseGZip(true).SetPrecision(time.Millisecond))
	defer client.Close()
	fields := map[string]interface{}{"rpm": 1450, "temp": 20.5, "on": true, "note": `x"y\z`, "count": uint64(7)}
	point := influxdb2.NewPoint("pump", map[string]string{"id": "a b"}, fields, time.UnixMilli(1))
	if err := client.WriteAPIBlocking("any", "plant").WritePoint(ctx, point); err != nil {
		return err
	}
	batches := client.WriteAPI("any", "plant")
	for n := range 5000 {
		batches.WritePoint(influxdb2.NewPointWithMeasurement("load").AddTag("id", fmt.Sprint(n%10)).AddField("n", n).SetTime(time.UnixMilli(int64(n))))
	}
	batches.Flush()
	if err := client.WriteAPIBlocking("any", "plant").WriteRecord(ctx, "pump rpm= 1"); err == nil {
		return fmt.Errorf("a bad line was taken")
	}
	health, err := client.Health(ctx)
	if err != nil {
		return err
	}
	ready, err := client.Ready(ctx)
	if err != nil {
		return err
	}
	pinged, err := client.Ping(ctx)
	if err != nil {
		return err
	}
	fmt.Println("health", health.Status, *ready.Status, pinged)
	org, err := client.OrganizationsAPI().FindOrganizationByName(ctx, "any")
	if err != nil {
		return err
	}
	made, err := client.BucketsAPI().CreateBucketWithName(ctx, org, "farm", domain.RetentionRule{EverySeconds: 86400})
	if err != nil {
		return err
	}
	if err := client.BucketsAPI().DeleteBucket(ctx, made); err != nil {
		return err
	}
	buckets, err := client.BucketsAPI().GetBuckets(ctx)
	if err != nil {
		return err
	}
	for _, bucket := range *buckets {
		// Servers keep some for themselves.
		if !strings.HasPrefix(bucket.Name, "_") {
			fmt.Println("bucket", bucket.Name)
		}
	}
	if err := client.DeleteAPI().DeleteWithName(ctx, "any", "plant", time.UnixMilli(0), time.UnixMilli(9), `_measurement="load" AND id="3"`); err != nil {
		return err
	}
	stranger := influxdb2.NewClient(url, "wrong")
	defer stranger.Close()
	fmt.Println("stranger", stranger.WriteAPIBlocking("any", "plant").WriteRecord(ctx, "pump rpm=1i 1"))
	return nil
}

func version3(ctx context.Context, url, token, roots string) error {
	client, err := influxdb3.New(influxdb3.ClientConfig{Host: url, Token: token, Database: "plant", SSLRootsFilePath: roots})
	if err != nil {
		return err
	}
	defer client.Close()
	points := []*influxdb3.Point{influxdb3.NewPoint("valve", map[string]string{"id": "a"}, map[string]any{"open": 7}, time.UnixMilli(1))}
	if err := client.WritePoints(ctx, points); err != nil {
		return err
	}
	if err := client.Write(ctx, []byte("valve,id=b open=8i 2000000")); err != nil {
		return err
	}
	rows, err := client.Query(ctx, "SELECT id, open FROM valve ORDER BY id")
	if err != nil {
		return err
	}
	for rows.Next() {
		fmt.Println("row", rows.Value()["id"], rows.Value()["open"])
	}
	bound, err := client.QueryWithParameters(ctx, "SELECT open FROM valve WHERE id = $id", influxdb3.QueryParameters{"id": "b"})
	if err != nil {
		return err
	}
	for bound.Next() {
		fmt.Println("bound", bound.Value()["open"])
	}
	version, err := client.GetServerVersion()
	if err != nil {
		return err
	}
	fmt.Println("version", version != "")
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
