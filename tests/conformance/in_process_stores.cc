// SPDX-License-Identifier: Apache-2.0
// The conformance suite on the stores that need no other program.
#include "common/base/runtime.h"
#include "common/objectstore/filesystem_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/prefix_object_store.h"
#include "common/objectstore/retrying_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "tests/conformance/object_store_conformance.h"
#include "tests/support/paths.h"
#include "tests/support/strict_s3_server.h"

namespace lambdadnn {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Memory, ObjectStoreConformance,
    testing::Values(StoreUnderTest{.name = "whole",
                                   .open = [] { return std::make_unique<MemoryObjectStore>(); }},
                    StoreUnderTest{.name = "prefix",
                                   .open =
                                       [] {
                                         return std::make_unique<PrefixObjectStore>(
                                             std::make_unique<MemoryObjectStore>(), "t/");
                                       }}),
    StoreName);

INSTANTIATE_TEST_SUITE_P(Files, ObjectStoreConformance,
                         testing::Values(StoreUnderTest{
                             .name = "folder",
                             .open =
                                 [] {
                                   return std::make_unique<FilesystemObjectStore>(MakeTempDir() +
                                                                                  "/not/yet/there");
                                 }}),
                         StoreName);

// The strict service and the machine it runs on, for one test.
class StrictWorld {
 public:
  explicit StrictWorld(const StrictS3Faults& faults) : server_(service_, StrictS3Options{}) {
    server_.SetFaults(faults);
  }
  ~StrictWorld() {
    for (const std::string& violation : server_.service().violations()) {
      ADD_FAILURE() << "the client broke a rule: " << violation;
    }
  }

  std::unique_ptr<ObjectStore> Open(const std::string& bucket) {
    S3Options options;
    options.endpoint = server_.endpoint();
    options.bucket = bucket;
    options.region = server_.service().options().region;
    options.credentials = server_.service().options().credentials;
    options.part_bytes = server_.service().options().min_part_bytes;
    auto s3 = std::make_unique<S3ObjectStore>(
        NewDataTransport({.inactivity_seconds = 10, .ca_file = ""}).value(), clock_, options);
    return std::make_unique<RetryingObjectStore>(
        std::move(s3), runtime_,
        RetryOptions{.first_wait_seconds = 0.001, .max_wait_seconds = 0.01, .budget_seconds = 30});
  }
  int64_t faults_injected() const { return server_.faults_injected(); }

 private:
  SystemClock clock_;
  ThreadExecutor executor_;
  // The service guards its own; those who ask may do so at once.
  SeededRandom chance_{7};
  Runtime service_{clock_, executor_, chance_};
  SystemRandom random_;
  Runtime runtime_{clock_, executor_, random_};
  StrictS3Server server_;
};

// A store that owns the world it talks to.
class StrictStore final : public ObjectStore {
 public:
  StrictStore(const StrictS3Faults& faults, const std::string& bucket)
      : world_(faults), store_(world_.Open(bucket)) {}
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    return store_->Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return store_->Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return store_->Head(key); }
  Status Delete(std::string_view key) override { return store_->Delete(key); }
  Status DeleteMany(std::span<const std::string> keys) override { return store_->DeleteMany(keys); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return store_->List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return store_->Describe(); }

 private:
  StrictWorld world_;
  std::unique_ptr<ObjectStore> store_;
};

StoreUnderTest Strict(const std::string& name, const StrictS3Faults& faults) {
  return {.name = name,
          .open = [faults] { return std::make_unique<StrictStore>(faults, "strict-bucket"); },
          .open_missing_bucket =
              [faults] { return std::make_unique<StrictStore>(faults, "no-such-bucket"); },
          .part_bytes = 5 << 20};
}

INSTANTIATE_TEST_SUITE_P(StrictS3, ObjectStoreConformance,
                         testing::Values(Strict("undisturbed", {}),
                                         Strict("disturbed", {.refuse = 0.1,
                                                              .lose_reply = 0.05,
                                                              .cut_body = 0.05,
                                                              .stale_close = 0.2,
                                                              .delay = 0.2,
                                                              .max_delay_seconds = 0.005})),
                         StoreName);

}  // namespace
}  // namespace lambdadnn
