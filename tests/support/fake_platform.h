// SPDX-License-Identifier: Apache-2.0
// A platform that only pretends to have functions: which groups are wanted, which instances there
// are, and how each of them ended. What an instance does is its driver's: rounds in virtual time
// (FakeFunctions), the product's own slices on fibers (tests/simulation), lines by the wall clock
// (stub-function-host). For one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "operator/backends/function_backend.h"

namespace lambdadnn {

struct FakeInstance {
  FunctionGroup group;
  FunctionInstance instance;  // as the platform shows it; its ages follow from the times below
  Instant created{};
  Instant ended{};
  bool IsGone() const { return instance.phase == FunctionPhase::kGone; }
};

// `Instance` is a FakeInstance with what its driver keeps of it.
template <typename Instance>
class FakePlatform {
 public:
  explicit FakePlatform(std::function<Instant()> now) : now_(std::move(now)) {}

  // --- What the driver does with one more and one less ---
  // Asked for the uid of the next instance; told of one that was made; asked to end one that no
  // group wants any more, which calls SetGone.
  std::function<std::string()> next_uid;
  std::function<void(Instance&)> made = [](Instance&) {};
  std::function<void(Instance&)> remove;
  // Of all instances that are not gone; 0 = no limit.
  int64_t capacity_mib = 0;

  // --- Groups ---
  void Want(const FunctionGroup& group) { groups_[Key(group.job_uid, group.name)] = group; }
  // Its instances are removed.
  void Drop(const std::string& job_uid, const std::string& group) {
    groups_.erase(Key(job_uid, group));
    for (Instance* each : Of(job_uid, group)) {
      if (!each->IsGone()) remove(*each);
    }
  }
  // Makes what the group lacks and removes what it has too many of.
  Status Reconcile(const std::string& job_uid, const std::string& group) {
    const FunctionGroup& wanted = groups_.at(Key(job_uid, group));
    int live = 0;
    for (Instance* each : Of(job_uid, group)) {
      if (!each->IsGone() && ++live > wanted.count) remove(*each);
    }
    for (; live < wanted.count; ++live) {
      if (capacity_mib > 0 && TakenMib() + wanted.memory_mib > capacity_mib) {
        return ResourceExhaustedError("no capacity for a function");
      }
      made(Add(next_uid(), wanted));
    }
    return OkStatus();
  }
  void ReconcileAll() {
    for (const auto& [key, group] : groups_) (void)Reconcile(group.job_uid, group.name);
  }

  // --- Instances, in the order in which they were made ---
  Instance& Add(const std::string& uid, const FunctionGroup& group) {
    Instance& added = *instances_.emplace_back(std::make_unique<Instance>());
    added.group = group;
    added.created = now_();
    added.instance.uid = uid;
    added.instance.group = group.name;
    by_uid_[uid] = &added;
    return added;
  }
  const std::vector<std::unique_ptr<Instance>>& all() const { return instances_; }
  // Of a job, gone ones too; of one of its groups, if that is named.
  std::vector<Instance*> Of(const std::string& job_uid, const std::string& group = "") const {
    std::vector<Instance*> members;
    for (const auto& each : instances_) {
      if (each->group.job_uid == job_uid && (group.empty() || each->group.name == group)) {
        members.push_back(each.get());
      }
    }
    return members;
  }
  // Null: there never was one, or it is forgotten.
  Instance* Find(const std::string& uid) const {
    const auto found = by_uid_.find(uid);
    return found == by_uid_.end() ? nullptr : found->second;
  }
  void SetGone(Instance& one, FunctionEnd end, const std::string& reason) {
    one.instance.phase = FunctionPhase::kGone;
    one.instance.end = end;
    one.instance.reason = reason;
    one.ended = now_();
  }
  // As the platform would answer now.
  FunctionInstance View(const Instance& one) const {
    FunctionInstance view = one.instance;
    view.age_seconds = ToSeconds(now_() - one.created);
    if (one.IsGone()) view.ended_seconds = ToSeconds(now_() - one.ended);
    return view;
  }
  std::vector<FunctionInstance> List(const std::string& job_uid) const {
    std::vector<FunctionInstance> list;
    for (const Instance* each : Of(job_uid)) list.push_back(View(*each));
    return list;
  }
  int64_t TakenMib() const {
    int64_t taken = 0;
    for (const auto& each : instances_) {
      if (!each->IsGone()) taken += each->group.memory_mib;
    }
    return taken;
  }
  // What is gone is no longer listed.
  void ForgetGone() {
    std::erase_if(by_uid_, [](const auto& each) { return each.second->IsGone(); });
    std::erase_if(instances_, [](const auto& each) { return each->IsGone(); });
  }

 private:
  static std::pair<std::string, std::string> Key(const std::string& job, const std::string& group) {
    return {job, group};
  }

  const std::function<Instant()> now_;
  std::map<std::pair<std::string, std::string>, FunctionGroup> groups_;  // by job uid and name
  std::vector<std::unique_ptr<Instance>> instances_;
  std::unordered_map<std::string, Instance*> by_uid_;
};

}  // namespace lambdadnn
