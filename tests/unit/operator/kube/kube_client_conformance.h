// SPDX-License-Identifier: Apache-2.0
// What every KubeClient must do, whatever server stands behind it: one suite for the in-memory API
// server and for a real one. The server has to serve the resource of ConformanceCrd().
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// widgets.test.lambdadnn.io/v1: spec {size: integer 1..10, default 3; colour: red|green; tags: list
// of text}, status {phase, ready}, with a status subresource.
Json ConformanceCrd();
const ResourceType& WidgetType();

struct KubeFixture {
  virtual ~KubeFixture() = default;
  virtual KubeClient& client() = 0;
};
using KubeFixtureFactory = std::function<std::unique_ptr<KubeFixture>()>;

class KubeClientConformance : public ::testing::TestWithParam<KubeFixtureFactory> {
 protected:
  void SetUp() override { fixture_ = GetParam()(); }
  KubeClient& client() { return fixture_->client(); }

 private:
  std::unique_ptr<KubeFixture> fixture_;
};

Json MakeWidget(const std::string& name, const std::string& namespace_name = "default");

}  // namespace lambdadnn
