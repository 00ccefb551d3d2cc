// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/store_probe.h"

#include <span>
#include <string_view>

namespace lambdadnn {
namespace {

Status Create(ObjectStore& store, const std::string& key, std::string_view text) {
  const ByteView part = AsBytes(text);
  return store.Put(key, std::span(&part, 1), {.if_absent = true});
}

bool IsAnswer(const Status& status) {
  return status.ok() || status.code() == StatusCode::kAlreadyExists ||
         status.code() == StatusCode::kUnimplemented;
}

}  // namespace

Result<std::vector<std::string>> ProbeStore(ObjectStore& store, const std::string& key) {
  // The object is there: an earlier probe was interrupted.
  Status created = Create(store, key, "1");
  if (created.ok()) {
    // Other bytes: a repeated request that finds its own is no answer.
    created = Create(store, key, "2");
    // A job that is refused now is deleted without a look at the store.
    if (!IsAnswer(created)) (void)store.Delete(key);
  }
  if (!IsAnswer(created)) return created;
  LDNN_RETURN_IF_ERROR(store.Delete(key));
  std::vector<std::string> capabilities;
  if (created.code() == StatusCode::kAlreadyExists) capabilities.emplace_back(kConditionalPut);
  if (store.Watch(key) != nullptr) capabilities.emplace_back(kArrivalHints);
  return capabilities;
}

}  // namespace lambdadnn
