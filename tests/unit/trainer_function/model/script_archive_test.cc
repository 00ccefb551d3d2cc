// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/script_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

TEST(ScriptArchive, CodeAndStructureAreLookedAtWhateverTheCaseOfTheirNames) {
  for (const char* name : {"net/code/__torch__.py", "NET/CODE/NET.PY", "data.pkl", "constants.pkl",
                           "net/model.json"}) {
    EXPECT_TRUE(IsCodeOfModule(name)) << name;
  }
  for (const char* name : {"net/data/0", "net/version", "net/code/net.py.debug_pkl"}) {
    EXPECT_FALSE(IsCodeOfModule(name)) << name;
  }
}

TEST(ScriptArchive, WhatRunsWhenAModuleIsReadOrWrittenIsRefused) {
  struct Row {
    const char* member;
    const char* content;
    const char* why;  // null = it may be there
  };
  const Row rows[] = {
      {"code/net.py", "def forward(self, x): return x", nullptr},
      {"code/net.py", "def __setstate__(self, state): pass", "has __setstate__"},
      {"code/NET.PY", "def __getstate__(self): pass", "has __getstate__"},
      {"data.pkl", "c__torch__.net\nNet\n", nullptr},
      {"data.pkl", "c__torch__.mytorch.classes\nNet\n", nullptr},
      {"data.pkl", "c__torch__.net.classes\nNet\n", nullptr},
      {"data.pkl", "c__torch__.torch.classes.quantized\nLinearParams\n", "torch.classes"},
      {"data.pkl", "c__torch__.torch\nclasses.quantized.LinearParams\n", "torch.classes"},
      {"data.pkl", "c__torch__\ntorch.classes.quantized.LinearParams\n", "torch.classes"},
      {"code/net.py", "w : __torch__.torch.classes.a.B", "torch.classes"},
      {"net/Model.json", "{}", "before 1.2"},
  };
  for (const Row& row : rows) {
    const Status status = CheckCodeOfModule(row.member, row.content);
    if (row.why == nullptr) {
      EXPECT_TRUE(status.ok()) << row.content;
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.content;
    EXPECT_THAT(status.message(), HasSubstr(row.why));
    EXPECT_THAT(status.message(), HasSubstr(row.member));
  }
}

}  // namespace
}  // namespace lambdadnn
