// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

Job ExampleJob() {
  Job job;
  job.metadata.namespace_name = "team";
  job.metadata.name = "digits";
  job.metadata.uid = "uid-1";
  job.spec.object_store.bucket = "training";
  job.spec.object_store.prefix = "runs/";
  return job;
}

std::vector<std::string> Readable(const Job& job) {
  const Json policy = *ParseJson(*JobStorePolicy(job, 2048));
  if (policy["Statement"].size() < 3) return {};
  EXPECT_EQ(policy["Statement"][2]["Action"], "s3:GetObject");
  return policy["Statement"][2]["Resource"].get<std::vector<std::string>>();
}

TEST(JobStorePolicy, OwnPrefixIsAllOfAJobThatReadsNothing) {
  const Json policy = *ParseJson(*JobStorePolicy(ExampleJob(), 2048));
  const Json& statements = policy["Statement"];
  ASSERT_EQ(statements.size(), 2u);
  EXPECT_EQ(statements[0]["Resource"], "arn:aws:s3:::training/runs/team/digits-uid1/*");
  EXPECT_EQ(statements[1]["Action"], "s3:ListBucket");
  EXPECT_EQ(statements[1]["Resource"], "arn:aws:s3:::training");
  EXPECT_EQ(statements[1]["Condition"]["StringLike"]["s3:prefix"], "runs/team/digits-uid1/*");
}

TEST(JobStorePolicy, AStoreWithAPathKeepsIt) {
  Job job = ExampleJob();
  job.spec.object_store = {};
  job.spec.object_store.uri = "s3://shared/all/of/us/";
  const Json policy = *ParseJson(*JobStorePolicy(job, 2048));
  EXPECT_EQ(policy["Statement"][0]["Resource"],
            "arn:aws:s3:::shared/all/of/us/lambdadnn/team/digits-uid1/*");
  EXPECT_EQ(policy["Statement"][1]["Condition"]["StringLike"]["s3:prefix"],
            "all/of/us/lambdadnn/team/digits-uid1/*");
}

TEST(JobStorePolicy, DataModelAndResumeFromAreReadable) {
  Job job = ExampleJob();
  job.spec.dataset.uri = "s3://data/mnist/";
  job.spec.model.torch_script_uri = "s3://models/a/model.pt";
  job.spec.checkpoint.resume_from = "s3://training/runs/team/uid-0";
  EXPECT_THAT(Readable(job),
              UnorderedElementsAre("arn:aws:s3:::data/mnist/*", "arn:aws:s3:::models/a/model.pt",
                                   "arn:aws:s3:::training/runs/team/uid-0/*"));
}

TEST(JobStorePolicy, OfADataSetThatIsAFileItsFolderIsReadable) {
  Job job = ExampleJob();
  job.spec.dataset.uri = "s3://data/set/train-images-idx3-ubyte";
  EXPECT_THAT(Readable(job), UnorderedElementsAre("arn:aws:s3:::data/set/*"));
  job.spec.dataset.test_uri = "test.csv";
  EXPECT_THAT(Readable(job), UnorderedElementsAre("arn:aws:s3:::data/set/*"));
  job.spec.dataset.test_uri = "s3://data/other/t10k-images-idx3-ubyte";
  EXPECT_THAT(Readable(job),
              UnorderedElementsAre("arn:aws:s3:::data/set/*", "arn:aws:s3:::data/other/*"));
}

TEST(JobStorePolicy, FoldersOfImagesMayBeListed) {
  Job job = ExampleJob();
  job.spec.dataset.uri = "s3://data/birds/train-0.tar";
  job.spec.dataset.test_uri = "s3://data/other";
  job.spec.dataset.format = DatasetFormat::kWebDataset;
  const Json policy = *ParseJson(*JobStorePolicy(job, 2048));
  ASSERT_EQ(policy["Statement"].size(), 5u);
  std::vector<std::string> listed;
  for (const size_t i : {2u, 3u}) {
    const Json& statement = policy["Statement"][i];
    EXPECT_EQ(statement["Action"], "s3:ListBucket");
    EXPECT_EQ(statement["Resource"], "arn:aws:s3:::data");
    listed.push_back(statement["Condition"]["StringLike"]["s3:prefix"].get<std::string>());
  }
  EXPECT_THAT(listed, UnorderedElementsAre("birds/*", "other/*"));
  job.spec.dataset.uri = "s3://data/birds/train.parquet";
  job.spec.dataset.format = DatasetFormat::kParquet;
  EXPECT_EQ(*ParseJson(*JobStorePolicy(job, 2048)), policy);
}

TEST(JobStorePolicy, WhatIsNoS3StoreNeedsNoRight) {
  Job job = ExampleJob();
  job.spec.dataset.uri = "file:///data/mnist";
  EXPECT_THAT(Readable(job), testing::IsEmpty());
  job.spec.object_store = {};
  job.spec.object_store.uri = "file:///store";
  EXPECT_EQ(JobStorePolicy(job, 2048).status().code(), StatusCode::kFailedPrecondition);
}

TEST(JobStorePolicy, NoPolicyKeepsApartWhatLiesBesideEverythingOrIsAPattern) {
  for (const char* uri : {"s3://data", "s3://data/", "s3://data/train.csv"}) {
    Job job = ExampleJob();
    job.spec.dataset.uri = uri;
    EXPECT_THAT(JobStorePolicy(job, 2048).status().message(), HasSubstr("root of bucket data"));
  }
  for (const char* uri : {"s3://data/a*", "s3://data/a?/b", "s3://data/${aws:username}"}) {
    Job job = ExampleJob();
    job.spec.dataset.uri = uri;
    EXPECT_THAT(JobStorePolicy(job, 2048).status().message(), HasSubstr("one of * ? $"));
  }
  Job job = ExampleJob();
  job.spec.object_store.prefix = "runs*";
  EXPECT_EQ(JobStorePolicy(job, 2048).status().code(), StatusCode::kFailedPrecondition);
}

TEST(JobStorePolicy, OneCharacterTooManyIsTooMany) {
  Job job = ExampleJob();
  job.spec.dataset.uri = "s3://data/mnist";
  const size_t length = JobStorePolicy(job, 2048)->size();
  EXPECT_TRUE(JobStorePolicy(job, length).ok());
  const Status refused = JobStorePolicy(job, length - 1).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("has " + std::to_string(length) + " characters"));
}

}  // namespace
}  // namespace lambdadnn
