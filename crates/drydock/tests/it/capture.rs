//! What an agent leaves in its worktree is what lands; a strategist leaves a draft and nothing else.

use crate::world::{World, files, list};

on_both! {
    /// S3.3. Breaks when a kind of change is not captured, or when something else than the record lands.
    fn every_kind_of_change_lands_exactly(kind: Kind) {
        let world = World::with_writer(kind, "echo tracked >> README.md; mv src/main.txt src/moved.txt; \
            rm src/other.txt; mkdir -p new/deep; echo untracked > 'new/deep/with space.txt'; \
            printf '\\000\\001\\377' > blob.bin; chmod +x run.sh; ln -s README.md link; \
            mkdir -p .drydock; echo secret > .drydock/notes; echo junk > ignored.log");
        world.repo.write("run.sh", "#!/bin/sh\n");
        world.repo.write(".gitignore", "*.log\n");
        let base = world.repo.commit("more files");
        let id = world.plan_after("apply");
        world.assert_landed_once(&id);
        let mut landed: Vec<String> = world.repo.git(&["diff", "--name-status", "-M", &base, "main"])
            .lines().map(str::to_owned).collect();
        landed.sort();
        assert_eq!(landed, [
            "A\tblob.bin", "A\tlink", "A\tnew/deep/with space.txt", "D\tsrc/other.txt", "M\tREADME.md",
            "M\trun.sh", "R100\tsrc/main.txt\tsrc/moved.txt",
        ]);
        assert!(world.repo.git(&["ls-tree", "main", "run.sh"]).starts_with("100755"));
        assert!(world.repo.git(&["ls-tree", "main", "link"]).starts_with("120000"));
        let blob = std::fs::read(world.repo.path().join("blob.bin")).unwrap();
        assert_eq!(blob, [0, 1, 255]);
        let changesets = list(&world.ok(&["changeset", "list", &id])["changesets"]);
        assert_eq!(changesets.len(), 1);
        assert_eq!(list(&changesets[0]["entries"]).len(), landed.len());
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a strategist may write code, or when the refusal does not say which.
    fn a_strategist_that_writes_anything_else_fails_naming_it(kind: Kind) {
        let world = World::new(kind);
        world.agent("thinker", "echo sneaky > sneaky.txt");
        world.action("fix", "[agents]\nstrategize = \"thinker\"");
        let id = world.plan(&[]);
        world.drydock(&["plan", "strategize", &id]).expect(1);
        let plan = world.show(&id);
        assert_eq!(plan["error"]["class"], "forbidden_change");
        assert!(plan["error"]["text"].as_str().unwrap().contains("sneaky.txt"), "{plan}");
    }
}

on_both! {
    /// Breaks when a login that an agent copied within its home outlives the run, whatever it did to keep it there.
    fn the_home_of_an_agent_goes_with_its_run(kind: Kind) {
        let world = World::with_writer(kind, "echo login > $HOME/copied-login; mkdir $HOME/held; \
            echo login > $HOME/held/copied-login; chmod 500 $HOME/held; echo done > done.txt; test -s $HOME/copied-login");
        world.plan_after("execute");
        let left = files(&world.worktrees());
        assert!(left.keys().any(|path| path.ends_with("done.txt")), "{:?}", left.keys());
        assert!(!left.keys().any(|path| path.ends_with("copied-login")), "{:?}", left.keys());
    }
}

on_both! {
    /// Breaks when an agent that cuts its worktree off is told of in words that help nobody, or loses its work.
    fn a_worktree_without_its_link_is_told_in_words_and_its_work_kept(kind: Kind) {
        let world = World::with_writer(kind, "rm .git; mkdir .git; echo precious > new.txt");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(1);
        let text = world.show(&id)["error"]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("replaced the file .git") && text.contains("`plan retry`"), "{text}");
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "execute", &id]).expect(1);
        let snapshots = world.repo.git(&["for-each-ref", "--format=%(refname)", &format!("refs/drydock/snap/{id}")]);
        let kept = snapshots.lines().any(|name| world.repo.git(&["ls-tree", "--name-only", name]).contains("new.txt"));
        assert!(kept, "{snapshots}");
    }
}

on_both! {
    /// Breaks when the draft is not adopted.
    fn the_choices_of_a_strategy_are_in_the_tree(kind: Kind) {
        let world = World::new(kind);
        let draft = r#"{"choices":[{"question":"Where?","chosen":"here","alternatives":["there"],"confidence":0.5}]}"#;
        world.agent("thinker", &format!("mkdir -p .drydock; echo '{draft}' > .drydock/strategy.json"));
        world.action("fix", "[agents]\nstrategize = \"thinker\"");
        let id = world.plan_after("strategize");
        let choices = list(&world.ok(&["plan", "tree", &id])["tree"]["choices"]);
        assert_eq!(choices.len(), 1);
        assert_eq!((&choices[0]["question"], &choices[0]["chosen"]), (&"Where?".into(), &"here".into()));
        assert_eq!(choices[0]["confidence"], 0.5);
    }
}
